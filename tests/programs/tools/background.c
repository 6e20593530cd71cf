// Forks itself into the background before MPI_Init, as a daemon does; with an argument what is there calls no MPI.
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    (void)argv;
    if (fork() != 0) exit(0);
    usleep(100000);
    if (argc > 1) return 0;
    MPI_Init(NULL, NULL);
    MPI_Finalize();
    return 0;
}
