// Messages to oneself: posted first, sent first, large, and buffered in between.
//# ranks: 1 2
//# progress: steal, none
#include "check.h"
enum { COUNT = 100000 };

int main(int argc, char **argv) {
    static int out[COUNT], in[COUNT];
    start(&argc, &argv);
    for (int i = 0; i < COUNT; i++) out[i] = i ^ rank;
    for (int count = 1; count <= COUNT; count *= 10) {
        MPI_Request requests[2];
        memset(in, 0xff, sizeof in);
        MPI_Irecv(in, count, MPI_INT, rank, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Send(out, count, MPI_INT, rank, 1, MPI_COMM_WORLD);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        CHECK(memcmp(in, out, count * sizeof *in) == 0);
        memset(in, 0xff, sizeof in);
        MPI_Issend(out, count, MPI_INT, 0, 2, MPI_COMM_SELF, &requests[0]);
        MPI_Irecv(in, count, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(memcmp(in, out, count * sizeof *in) == 0);
    }
    return finish();
}
