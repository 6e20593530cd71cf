/* Rank 1 has a shell run the first argument, if there is one, and becomes the user of this number, if there is a
   second one. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define CHECK(held)                                             \
    do {                                                        \
        if (!(held)) {                                          \
            fprintf(stderr, "line %d: %s\n", __LINE__, #held);  \
            MPI_Abort(MPI_COMM_WORLD, 1);                       \
        }                                                       \
    } while (0)

int main(int argc, char **argv)
{
    int rank, before = 0, after = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1 && argc > 1) CHECK(system(argv[1]) == 0);
    if (rank == 1 && argc > 2) {
        CHECK(prctl(PR_GET_PDEATHSIG, &before) == 0);
        /* What is as it was costs nothing. */
        CHECK(setuid(getuid()) == 0 && seteuid(getuid()) == 0);
        CHECK(setresgid(-1, atoi(argv[2]), -1) == 0);
        CHECK(setreuid(atoi(argv[2]), atoi(argv[2])) == 0 && geteuid() == (uid_t)atoi(argv[2]));
        CHECK(prctl(PR_GET_PDEATHSIG, &after) == 0 && after == before && before != 0);
        CHECK(setuid(0) == -1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) puts("passed");
    MPI_Finalize();
}
