// A receive that nothing matches can be cancelled; a message is taken by the receive that was
// cancelled too late or by the next one, and never lost.
//# ranks: 1 2
//# progress: all
#include "check.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    int value = -1, one = 1, cancelled;
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled);
    CHECK(request == MPI_REQUEST_NULL);

    MPI_Irecv(&value, 1, MPI_INT, rank, 78, MPI_COMM_WORLD, &request);
    MPI_Send(&one, 1, MPI_INT, rank, 78, MPI_COMM_WORLD);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    if (cancelled) /* then the message is still there */
        MPI_Recv(&value, 1, MPI_INT, rank, 78, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(value, 1);
    return finish();
}
