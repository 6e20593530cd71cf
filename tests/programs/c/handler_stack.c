/* Handlers that ask for another stack, while the program has set none, have room, and all ranks at once. */
//# ranks: 2 8
//# abi: mpich mpi5
#define _GNU_SOURCE
#include "check.h"
#include <sched.h>
#include <signal.h>
#include <string.h>

enum { LENGTH = 100 << 10 };

static volatile sig_atomic_t wrong;

static void handler(int number)
{
    volatile char here[LENGTH];
    (void)number;
    for (int turn = 0; turn < 20; turn++) {
        for (int at = 0; at < LENGTH; at++)
            here[at] = (char)(rank + turn);
        sched_yield();
        for (int at = 0; at < LENGTH; at++)
            wrong += here[at] != (char)(rank + turn);
    }
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int round = 0; round < 5; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK(raise(SIGUSR1) == 0);
        CHECK(wrong == 0);
    }
    return finish();
}
