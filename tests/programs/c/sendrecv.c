// Sendrecv and Sendrecv_replace around a ring, with small and large messages, and with
// MPI_PROC_NULL at the ends of a line.
//# ranks: 1 2 3 8
//# progress: steal, none
#include "check.h"

int main(int argc, char **argv) {
    static const int counts[] = {0, 1, 1000, 500000};
    start(&argc, &argv);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    int *out = malloc(500000 * sizeof *out), *in = malloc(500000 * sizeof *in);
    for (int c = 0; c < 4; c++) {
        int count = counts[c];
        for (int i = 0; i < count; i++) out[i] = rank * 1000003 + i;
        MPI_Status status;
        MPI_Sendrecv(out, count, MPI_INT, right, 1, in, count, MPI_INT, left, 1, MPI_COMM_WORLD, &status);
        CHECK_EQ(status.MPI_SOURCE, left);
        for (int i = 0; i < count; i++) CHECK_EQ(in[i], left * 1000003 + i);
        MPI_Sendrecv_replace(out, count, MPI_INT, right, 2, left, 2, MPI_COMM_WORLD, &status);
        for (int i = 0; i < count; i++) CHECK_EQ(out[i], left * 1000003 + i);
    }
    int up = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, down = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    MPI_Status status;
    in[0] = -7;
    MPI_Sendrecv(&rank, 1, MPI_INT, up, 3, in, 1, MPI_INT, down, 3, MPI_COMM_WORLD, &status);
    CHECK_EQ(in[0], rank > 0 ? rank - 1 : -7);
    CHECK_EQ(status.MPI_SOURCE, down);
    free(out);
    free(in);
    return finish();
}
