// A program, or with -DENTRY=NAME a function of a library, that prints the size of its world and the sum of all
// ranks plus one.
#include <mpi.h>
#include <stdio.h>

#ifndef ENTRY
#define ENTRY main
#endif

int ENTRY(void) {
    int rank, size, one, sum = 0;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    one = rank + 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("size %d sum %d\n", size, sum);
    fflush(stdout);
    return MPI_Finalize();
}
