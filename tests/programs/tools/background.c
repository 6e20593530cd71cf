// Forks itself into the background before MPI_Init, as a daemon does; with an argument what is there calls no MPI, and
// with a second one it stays, with nobody to talk to, and has written its number to the end of that file.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (fork() != 0) exit(0);
    if (argc > 2) {
        FILE *numbers = fopen(argv[2], "a");
        if (numbers == NULL || fprintf(numbers, "%d\n", (int)getpid()) < 0 || fclose(numbers) != 0) abort();
        for (int descriptor = 0; descriptor < 3; descriptor++) close(descriptor);
        pause();
    }
    usleep(100000);
    if (argc > 1) return 0;
    MPI_Init(NULL, NULL);
    MPI_Finalize();
    return 0;
}
