// Rank 1 writes where nothing is; the report names the function and its caller.
#include <mpi.h>
#include <stddef.h>

static void write_nowhere(volatile int *place) {
    *place = 1;
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1) write_nowhere(NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
