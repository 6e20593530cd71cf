/* Two ranks send each other messages of 16 MiB. With an argument, the second one computes for so many seconds before it
 * receives, and all is over after that; without, it goes on for ever. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LENGTH = 16 << 20 };

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *out = calloc(1, LENGTH), *in = malloc(LENGTH);
    out[LENGTH - 1] = 7;
    do {
        MPI_Request requests[2];
        MPI_Irecv(in, LENGTH, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, LENGTH, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
        if (argc > 1 && rank == 1)
            sleep(atoi(argv[1]));
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        if (in[LENGTH - 1] != 7)
            MPI_Abort(MPI_COMM_WORLD, 3);
    } while (argc == 1);
    if (rank == 0)
        puts("passed");
    return MPI_Finalize();
}
