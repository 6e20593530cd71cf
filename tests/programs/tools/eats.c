// Rank 1 takes memory until there is no more; the others wait for it.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    enum { MEGABYTE = 1 << 20 };
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    while (rank == 1) {
        char *more = malloc(MEGABYTE);
        if (more == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
        memset(more, 1, MEGABYTE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
