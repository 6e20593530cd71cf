/* Prints the rank and MPI_APPNUM. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, found, *number;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &found);
    printf("%d %d\n", rank, found ? *number : -1);
    MPI_Finalize();
    return 0;
}
