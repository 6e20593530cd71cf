// Messages that were complete at their sender arrive after its last session has ended, by whatever calls they are
// received (MPI 4.1 3.5).
//# ranks: 2 4
//# progress: steal, none, thread
#include "session.h"
#include <unistd.h>

enum { COUNT = 1000 };

// Receives from the first process, which has ended: in turn by tests, in waits and by probes.
static void receive(MPI_Comm comm) {
    for (int i = 0; i < COUNT; i++) {
        int value = -1, flag = 0;
        MPI_Request request;
        switch (i / 100 % 3) {
        case 0:
            MPI_Irecv(&value, 1, MPI_INT, 0, 5, comm, &request);
            while (!flag)
                MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            break;
        case 1:
            MPI_Recv(&value, 1, MPI_INT, 0, 5, comm, MPI_STATUS_IGNORE);
            break;
        default:
            while (!flag)
                MPI_Iprobe(MPI_ANY_SOURCE, 5, comm, &flag, MPI_STATUS_IGNORE);
            MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 5, comm, MPI_STATUS_IGNORE);
        }
        if (value != i) {
            fprintf(stderr, "message %d came as %d\n", i, value);
            exit(1);
        }
    }
}

int main(void) {
    MPI_Session session;
    MPI_Comm comm = begin_session(&session);
    if (rank == 0) {
        for (int i = 0; i < COUNT; i++)
            for (int to = 1; to < size; to++)
                MPI_Send(&i, 1, MPI_INT, to, 5, comm);
    } else {
        sleep(1);
        receive(comm);
    }
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return 0;
}
