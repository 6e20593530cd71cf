// Whoever ends a session, or MPI_Finalize, waits for the buffered messages of that one only: those of others arrive
// when their receiver has ended the same (MPI 4.1 3.6, 11.3).
//# ranks: 2 4
#include "session.h"

enum { LONG = 1 << 20, ROOM = LONG + MPI_BSEND_OVERHEAD };

static char data[LONG], session_room[ROOM], world_room[ROOM];

static void send_to_next(MPI_Comm comm) { MPI_Bsend(data, LONG, MPI_CHAR, (rank + 1) % size, 1, comm); }

static void receive(MPI_Comm comm) {
    int count;
    MPI_Status status;
    MPI_Recv(data, LONG, MPI_CHAR, (rank + size - 1) % size, 1, comm, &status);
    MPI_Get_count(&status, MPI_CHAR, &count);
    CHECK_EQ(count, LONG);
}

int main(int argc, char **argv) {
    MPI_Session first, second;
    start(&argc, &argv);
    MPI_Comm comm = begin_session(&first), other = begin_session(&second);
    MPI_Session_attach_buffer(first, session_room, ROOM);
    // That of the process serves all that have none.
    MPI_Buffer_attach(world_room, ROOM);

    send_to_next(MPI_COMM_WORLD);
    MPI_Comm_free(&other);
    MPI_Session_finalize(&second);
    receive(MPI_COMM_WORLD);

    other = begin_session(&second);
    MPI_Buffer_flush();
    send_to_next(comm);
    send_to_next(other);
    MPI_Finalize();
    receive(comm);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&first);
    receive(other);
    MPI_Comm_free(&other);
    MPI_Session_finalize(&second);
    if (rank == 0) puts("passed");
    return 0;
}
