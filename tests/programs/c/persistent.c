// Persistent requests are started again and again; an inactive one completes at once.
//# ranks: 1 2 4
//# progress: all
#include "check.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    int in = -1, out, done, right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Send_init(&out, 1, MPI_INT, right, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(&in, 1, MPI_INT, left, 3, MPI_COMM_WORLD, &requests[1]);
    MPI_Test(&requests[1], &done, &status);
    CHECK(done && status.MPI_SOURCE == MPI_ANY_SOURCE);
    for (int round = 0; round < 20; round++) {
        out = rank * 100 + round;
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(requests[0] != MPI_REQUEST_NULL);
        CHECK_EQ(in, left * 100 + round);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    CHECK(requests[0] == MPI_REQUEST_NULL);
    return finish();
}
