// Ranks that block all signals, as programs with a thread for signals do, send to one that has protected its buffer and
// opens it in a handler. Who copies would be killed by the first page, whose signal it blocks.
//# ranks: 2 3
//# progress: none steal
//# nodes: no
// Between nodes the kernel or the receiver's transport writes.
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
enum { LENGTH = 1 << 20, ROUNDS = 20 };
static char *volatile tracked;
static pid_t task;

static void open_pages(int signal, siginfo_t *information, void *context) {
    (void)context;
    long offset = (char *)information->si_addr - tracked;
    if (signal != SIGSEGV || offset < 0 || offset >= LENGTH || gettid() != task) _exit(9);
    if (mprotect(tracked, LENGTH, PROT_READ | PROT_WRITE)) _exit(10);
}

static void check_blocked(int expected) {
    sigset_t blocked;
    CHECK_EQ(sigprocmask(SIG_SETMASK, NULL, &blocked), 0);
    CHECK_EQ(sigismember(&blocked, SIGSEGV), expected);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    task = gettid();
    tracked = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(tracked != MAP_FAILED);
    if (rank == 1) {
        struct sigaction action = {.sa_sigaction = open_pages, .sa_flags = SA_SIGINFO};
        CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    } else {
        sigset_t all;
        sigfillset(&all);
        CHECK_EQ(sigprocmask(SIG_SETMASK, &all, NULL), 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (rank == 1) {
            MPI_Irecv(tracked, LENGTH, MPI_CHAR, 0, round, MPI_COMM_WORLD, &request);
            CHECK_EQ(mprotect(tracked, LENGTH, round % 2 ? PROT_READ : PROT_NONE), 0);
        } else if (rank == 0) {
            memset(tracked, round + 1, LENGTH);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) MPI_Send(tracked, LENGTH, MPI_CHAR, 1, round, MPI_COMM_WORLD);
        // While rank 1 computes the others copy, if they do so for others.
        if (rank == 1) usleep(2000);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (rank == 1)
            for (int i = 0; i < LENGTH; i++) CHECK_EQ(tracked[i], round + 1);
        MPI_Barrier(MPI_COMM_WORLD);
        check_blocked(rank != 1);
    }
    return finish();
}
