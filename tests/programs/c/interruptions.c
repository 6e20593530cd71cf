// A program that lives with signals of its own while messages are under way: an interval timer every
// 50 us whose handler leaves by longjmp, sleeps and pauses, an alternative stack, blocked signals, child
// processes. No message is lost, no byte wrong, and no call ends with EINTR that the program's own signals do
// not explain.
//# ranks: 2 4
//# abi: mpi5
//# progress: all
//# timeout: 60
#include "check.h"
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
enum { LENGTH = 300000, ROUNDS = 6 };
extern char **environ;
static unsigned char incoming[LENGTH], late[LENGTH], outgoing[LENGTH];
static sigjmp_buf back;
static volatile sig_atomic_t alarms, jumps, may_jump;

static void on_alarm(int number) {
    (void)number;
    alarms++;
    if (may_jump && alarms % 7 == 0) {
        jumps++;
        siglongjmp(back, 1);
    }
}

static void storm(long microseconds) {
    struct itimerval times = {{0, microseconds}, {0, microseconds}};
    CHECK_EQ(setitimer(ITIMER_REAL, &times, NULL), 0);
}

/* Some milliseconds of work, which the handler of the storm throws out of again and again. */
static void compute(int milliseconds) {
    double end = MPI_Wtime() + milliseconds * 1e-3;
    if (sigsetjmp(back, 1)) CHECK(jumps > 0);
    may_jump = 1;
    while (MPI_Wtime() < end) continue;
    may_jump = 0;
}

/* Without signals of the program's own, sleeps last as long as they should. */
static void sleeps(void) {
    double begin = MPI_Wtime();
    CHECK_EQ(usleep(30000), 0);
    struct timespec time = {0, 30000000}, left = {0, 0};
    CHECK_EQ(nanosleep(&time, &left), 0);
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL), 0);
    CHECK(MPI_Wtime() - begin > 0.089);
}

/* A pause ends with the program's signal and no other. The timer goes on, since a machine with much to do may
   begin the pause after the first signal. */
static void pauses(void) {
    int before = alarms;
    storm(20000);
    CHECK(pause() == -1 && errno == EINTR);
    CHECK(alarms > before);
    storm(0);
}

static void children(void) {
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        usleep(1000);
        _exit(7);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    char *words[] = {"sh", "-c", "sleep 0.01; exit 5", NULL};
    CHECK_EQ(posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ), 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

static void blocked(void) {
    sigset_t all, before;
    sigfillset(&all);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &all, &before), 0);
    usleep(3000);
    CHECK_EQ(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

static void round_of(int number) {
    MPI_Request requests[4];
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    for (int i = 0; i < LENGTH; i++) outgoing[i] = (unsigned char)(i + number * 3 + rank);
    memset(incoming, 0, LENGTH);
    memset(late, 0, LENGTH);
    MPI_Irecv(incoming, LENGTH, MPI_BYTE, last, number, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(late, LENGTH, MPI_BYTE, last, ROUNDS * 2 + number, MPI_COMM_WORLD, &requests[1]);
    if (rank % 2 == 0) usleep(500);
    MPI_Isend(outgoing, LENGTH, MPI_BYTE, next, number, MPI_COMM_WORLD, &requests[2]);
    /* The second message comes in the sleep that the first one has interrupted. */
    CHECK_EQ(usleep(2000), 0);
    MPI_Isend(outgoing, LENGTH, MPI_BYTE, next, ROUNDS * 2 + number, MPI_COMM_WORLD, &requests[3]);
    switch (number % ROUNDS) {
    case 0: sleeps(); break;
    case 1: pauses(); break;
    case 2: children(); break;
    case 3: blocked(); break;
    default: storm(50); compute(20); storm(0);
    }
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < LENGTH; i++) CHECK_EQ(incoming[i], (unsigned char)(i + number * 3 + last));
    CHECK(memcmp(incoming, late, LENGTH) == 0);
}

int main(int argc, char **argv) {
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK};
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    start(&argc, &argv);
    CHECK_EQ(sigaltstack(&stack, NULL), 0);
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    for (int number = 0; number < 2 * ROUNDS; number++) round_of(number);
    // A program that executes another one takes no timer along.
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(jumps > 0);
    return finish();
}
