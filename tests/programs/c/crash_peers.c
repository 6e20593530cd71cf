// The others of a job are ended when a rank gets a fatal fault, not when its core dump is written. In place of a long
// dump, a tracer holds the rank at the signal that ends it, until another rank was told to end.
//# ranks: 2 3
//# nodes: no
// The ranks share memory.
//# exit: 139
//# stderr: rank 0 (pid
//# stderr: killed by signal 11 (SIGSEGV)
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int *is_told;
static volatile char *volatile nothing;

static void on_end(int signal) {
    (void)signal;
    *is_told = 1;
}

// Traces its parent: the first fault is for the handler that it started with, the second one ends it.
static void hold(pid_t traced, int ready) {
    int status, faults = 0;
    if (ptrace(PTRACE_SEIZE, traced, 0, 0)) _exit(1);
    if (write(ready, "", 1) != 1) _exit(1);
    while (waitpid(traced, &status, __WALL) == traced && WIFSTOPPED(status)) {
        int signal = WSTOPSIG(status);
        if (signal == SIGSEGV && ++faults == 2)
            while (!*is_told) usleep(1000);
        ptrace(PTRACE_CONT, traced, 0, signal);
    }
    _exit(0);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (rank == 0) {
        is_told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(is_told != MAP_FAILED);
    }
    MPI_Bcast((void *)&is_told, sizeof is_told, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank > 0) signal(SIGTERM, on_end);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        int ready[2];
        char byte;
        pid_t own = getpid();
        CHECK_EQ(pipe(ready), 0);
        pid_t tracer = fork();
        if (tracer == 0) hold(own, ready[1]);
        prctl(PR_SET_PTRACER, tracer, 0, 0, 0);
        close(ready[1]);
        CHECK_EQ(read(ready[0], &byte, 1), 1);
        *nothing = 1;
    }
    return finish();
}
