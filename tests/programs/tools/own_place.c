/* A rank knows its place by the variables of MPICH and Open MPI, before MPI_Init. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int number(const char *name)
{
    const char *value = getenv(name);
    return value ? atoi(value) : -1;
}

int main(int argc, char **argv)
{
    int ranks[] = {number("PMI_RANK"), number("MPI_LOCALRANKID"), number("OMPI_COMM_WORLD_RANK")};
    int sizes[] = {number("PMI_SIZE"), number("MPI_LOCALNRANKS"), number("OMPI_COMM_WORLD_SIZE")};
    int rank, size, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int at = 0; at < 3; at++)
        wrong += ranks[at] != rank || sizes[at] != size;
    printf("wrong %d\n", wrong);
    MPI_Finalize();
    return wrong != 0;
}
