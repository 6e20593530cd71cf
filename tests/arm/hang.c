/* Two ranks that wait for each other. */
#include <mpi.h>

static __attribute__((noinline)) void wait_for(int other)
{
    int number;
    MPI_Recv(&number, 1, MPI_INT, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    wait_for(1 - rank);
    MPI_Finalize();
    return 0;
}
