// MPI_Finalize waits for whoever has called MPI_Init, also after a session, and not for processes that only use
// sessions (MPI 4.1 11.3).
//# ranks: 2 4
//# progress: steal, none, thread
//# wait: auto, park
// Between nodes MPI_Finalize is a collective call on MPI_COMM_WORLD.
//# nodes: no
#include "session.h"
#include <unistd.h>

static void session(void) {
    MPI_Session session;
    MPI_Comm comm = begin_session(&session);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}

int main(void) {
    volatile int came = 0, *place = &came;
    session();
    // The others have a session more, and that is all.
    if (rank % 2 == 1) {
        MPI_Session another;
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &another);
        MPI_Session_finalize(&another);
        return 0;
    }
    MPI_Init(NULL, NULL);
    // All ranks of a node have one address space.
    if (rank == 0 && size == 4) {
        CHECK_EQ(MPI_Send(&place, sizeof place, MPI_BYTE, 2, 0, MPI_COMM_WORLD), MPI_SUCCESS);
        // It has called MPI_Init.
        CHECK_EQ(MPI_Recv(NULL, 0, MPI_BYTE, 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_SUCCESS);
    } else if (size == 4) {
        CHECK_EQ(MPI_Recv(&place, sizeof place, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_SUCCESS);
        CHECK_EQ(MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD), MPI_SUCCESS);
        usleep(50000);
        *place = 1;
    }
    MPI_Finalize();
    if (rank == 0) CHECK_EQ(came, size == 4);
    return 0;
}
