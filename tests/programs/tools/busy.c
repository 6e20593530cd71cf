/* Never ends: `busy message FILE` sends long messages to and fro, `busy collective FILE` folds long
 * vectors. Makes FILE when that is well under way. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { LENGTH = 32 << 20, WARM_UP = 3 };

int main(int argc, char **argv) {
    int rank, size;
    char *out = calloc(LENGTH, 1), *in = calloc(LENGTH, 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0;; round++) {
        if (round == WARM_UP && rank == 0) fclose(fopen(argv[2], "w"));
        if (strcmp(argv[1], "message") == 0)
            MPI_Sendrecv(out, LENGTH, MPI_CHAR, size - 1 - rank, 0, in, LENGTH, MPI_CHAR,
                         size - 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Allreduce(out, in, LENGTH / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}
