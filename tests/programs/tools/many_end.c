// For the ends of many ranks: what a program registers for its end, what it leaves in a stream, and its status count,
// whatever way it ends. The rank whose number is given ends with status 3, the others with 0, all with signals
// meanwhile. A child that a rank has forked ends too.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank;

static void handler(void) { printf("handler "); }

__attribute__((destructor)) static void destructor(void) { printf("destructor of %d\nend", rank); }

static void tick(int number) { (void)number; }

int main(int argc, char **argv) {
    // A signal that would end a program without this handler.
    struct itimerval often = {{0, 1000}, {0, 1000}};
    signal(SIGALRM, tick);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    atexit(handler);
    MPI_Finalize();
    if (rank == 0) {
        int status;
        pid_t child = fork();
        if (child == 0) exit(7);
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7) return 4;
    }
    if (argc > 1) setitimer(ITIMER_REAL, &often, NULL);
    return argc > 1 && atoi(argv[1]) == rank ? 3 : 0;
}
