// Places where a fault strikes: argument 1 says what all ranks do again and again, or what all but rank 1 wait in
// (`finalize`). With `init` a rank waits in MPI_Init for those that were started with `late`, which never come.
// Argument 2 is a file that appears when they are under way; argument 3, if there is one, is a number of rounds, after
// which the program ends well, and each rank is interrupted a thousand times a second meanwhile.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { LONG = 1 << 20 };

static int rank, size;
static char *out, *in, *memory;

static void exchange(int length) {
    MPI_Sendrecv(out, length, MPI_CHAR, (rank + 1) % size, 0, in, length, MPI_CHAR, (rank + size - 1) % size, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void once(const char *place, MPI_Win win) {
    if (strcmp(place, "eager") == 0) exchange(8);
    if (strcmp(place, "rendezvous") == 0) exchange(LONG);
    if (strcmp(place, "collective") == 0) {
        MPI_Bcast(out, 100, MPI_CHAR, 0, MPI_COMM_WORLD);
        MPI_Allreduce(out, in, 1000, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    if (strcmp(place, "window") == 0) {
        int target = (rank + 1) % size;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
        MPI_Put(out, 1000, MPI_CHAR, target, 0, 1000, MPI_CHAR, win);
        MPI_Win_flush(target, win);
        MPI_Win_unlock(target, win);
    }
    if (strcmp(place, "dup") == 0) {
        MPI_Comm copy;
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Comm_free(&copy);
    }
    if (strcmp(place, "create") == 0) {
        MPI_Win other;
        MPI_Win_create(memory, LONG, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &other);
        MPI_Win_free(&other);
    }
}

static void on_alarm(int signal) { (void)signal; }

static void interrupt(void) {
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval often = {{0, 1000}, {0, 1000}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

static void say(const char *file) {
    FILE *sign = fopen(file, "w");
    if (sign) fclose(sign);
}

static void wait_for_ever(const char *file) {
    say(file);
    for (;;) sleep(1);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    const char *place = argv[1];
    long rounds = argc > 3 ? atol(argv[3]) : -1;
    if (strcmp(place, "late") == 0) wait_for_ever(argv[2]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    out = calloc(1, LONG), in = calloc(1, LONG), memory = calloc(1, LONG);
    if (!out || !in || !memory) MPI_Abort(MPI_COMM_WORLD, 9);
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(place, "finalize") == 0 && rank == 1) wait_for_ever(argv[2]);
    if (strcmp(place, "finalize") != 0) {
        MPI_Win win;
        MPI_Win_create(memory, LONG, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        if (rounds > 0) interrupt();
        for (long round = 0; round != rounds; round++) {
            once(place, win);
            if (round == 20 && rank == 1) say(argv[2]);
        }
        MPI_Win_free(&win);
    }
    MPI_Finalize();
    if (rank == 0) puts("passed");
    return 0;
}
