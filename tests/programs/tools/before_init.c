// Ends before MPI_Init if there is an argument, else it meets the others: `end` only in MPI_Finalize.
#include <mpi.h>
#include <string.h>

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "end") != 0) return 0;
    MPI_Init(NULL, NULL);
    if (argc == 1) MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Finalize();
}
