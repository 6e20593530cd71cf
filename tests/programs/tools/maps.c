// Says whether a library is in the address space of the ranks of a node: maps NAME.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, found = 0;
    char line[4096];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    FILE *maps = fopen("/proc/self/maps", "r");
    if (argc != 2 || !maps) MPI_Abort(MPI_COMM_WORLD, 2);
    while (fgets(line, sizeof line, maps)) found |= strstr(line, argv[1]) != NULL;
    fclose(maps);
    printf("rank %d: %s is %s\n", rank, argv[1], found ? "there" : "not there");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
