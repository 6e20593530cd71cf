// How ranks leave: argument 1 is `never` (all wait for ever), or what rank 1 does instead of meeting the others in
// MPI: `_exit`, `exit`, `status` (_exit with 3). With `late` it calls _exit behind MPI_Finalize, with `before` it never
// calls MPI_Init, and nobody else does. Argument 2 is a file that rank 0 makes when all are under way.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int rank, nothing;
    if (strcmp(what, "before") == 0) _exit(0);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && argc > 2) fclose(fopen(argv[2], "w"));
    if (rank == 1) {
        if (strcmp(what, "_exit") == 0) _exit(0);
        if (strcmp(what, "exit") == 0) exit(0);
        if (strcmp(what, "status") == 0) _exit(3);
    }
    if (strcmp(what, "never") == 0) {
        MPI_Recv(&nothing, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (strcmp(what, "late") == 0 && rank == 1) _exit(0);
    return 0;
}
