/* `speaks LINES [FILE]`: passes a token around the ring, then every rank prints so many lines of 63 letters of its
 * own: 'a' for rank 0. With FILE, which rank 0 makes, it first waits until some rank has got SIGUSR1. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t told;

static void on_signal(int signal) { told = signal; }

int main(int argc, char **argv) {
    int rank, size, token = 0;
    signal(SIGUSR1, on_signal);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 2 && rank == 0) fclose(fopen(argv[2], "w"));
    for (int all = argc <= 2; !all;) {
        int mine = told != 0;
        MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    if (rank > 0) MPI_Recv(&token, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    token += rank;
    MPI_Send(&token, 1, MPI_INT, right, 0, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(&token, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0 && token != size * (size - 1) / 2) MPI_Abort(MPI_COMM_WORLD, 1);
    char line[64];
    memset(line, 'a' + rank, 63);
    line[63] = 0;
    for (int count = 0; count < atoi(argv[1]); count++) puts(line);
    MPI_Finalize();
    return 0;
}
