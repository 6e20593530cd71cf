// What the programs with a mistake for each mode end with.
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MODE(name) {#name, name}

struct mode {
    const char *name;
    void (*run)(void);
};

// Runs a mode after MPI_Init, and ends MPI.
static int run(const struct mode *modes, size_t count, const char *mode, int *rank, int *size)
{
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(modes[i].name, mode)) {
            modes[i].run();
            MPI_Finalize();
            return 0;
        }
    fprintf(stderr, "no such mode: %s\n", mode);
    MPI_Abort(MPI_COMM_WORLD, 2);
    return 2;
}
