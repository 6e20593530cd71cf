// What a process has sent without waiting for it arrives after its last session has ended, however long it is: buffered
// messages, replaced ones, and those whose request was freed (MPI 4.1 3.6, 3.7.3, 11.3). Who ends without a receive
// keeps nobody waiting.
//# ranks: 2 4
//# progress: steal, none, thread
#include "session.h"
#include <string.h>
#include <unistd.h>

enum { COUNT = 40, SHORT = 60000, LONG = 2000000, ROOM = COUNT * (SHORT + MPI_BSEND_OVERHEAD) };

static char replaced[LONG], freed[LONG], unwanted[LONG];

static void send_to(int to, MPI_Comm comm) {
    static char data[SHORT];
    MPI_Request request;
    for (int i = 0; i < COUNT; i++) {
        memset(data, i + to, SHORT);
        MPI_Bsend(data, SHORT, MPI_CHAR, to, 5, comm);
    }
    memset(replaced, 100 + to, LONG);
    MPI_Sendrecv_replace(replaced, LONG, MPI_CHAR, to, 6, MPI_PROC_NULL, 6, comm, MPI_STATUS_IGNORE);
    MPI_Isend(freed, LONG, MPI_CHAR, to, 7, comm, &request);
    MPI_Request_free(&request);
    MPI_Isend(unwanted, LONG, MPI_CHAR, to, 8, comm, &request);
    MPI_Request_free(&request);
}

static void receive(int count, int tag, int value, MPI_Comm comm) {
    static char data[LONG];
    memset(data, -1, count);
    MPI_Recv(data, count, MPI_CHAR, 0, tag, comm, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++) {
        if (data[i] != value) {
            fprintf(stderr, "byte %d of tag %d is %d in place of %d\n", i, tag, data[i], value);
            exit(1);
        }
    }
}

int main(void) {
    MPI_Session session;
    MPI_Comm comm = begin_session(&session);
    if (rank == 0) {
        char *room = malloc(ROOM * (size - 1));
        MPI_Session_attach_buffer(session, room, ROOM * (size - 1));
        memset(freed, 99, LONG);
        for (int to = 1; to < size; to++)
            send_to(to, comm);
    } else {
        sleep(1);
        for (int i = 0; i < COUNT; i++)
            receive(SHORT, 5, i + rank, comm);
        receive(LONG, 7, 99, comm);
        receive(LONG, 6, 100 + rank, comm);
    }
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return 0;
}
