// A program that lives with signals of its own while messages are under way: an interval timer every
// 50 us whose handler leaves by longjmp, sleeps and pauses, an alternative stack, blocked signals, child
// processes. No message is lost, no byte wrong, and no call ends with EINTR that the program's own signals do
// not explain.
//# ranks: 2 4
//# abi: mpi5
//# progress: all
//# timeout: 60
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
enum { LENGTH = 300000, ROUNDS = 7 };
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
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &time), 0);
    time.tv_nsec += 30000000;
    if (time.tv_nsec >= 1000000000) time.tv_sec++, time.tv_nsec -= 1000000000;
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL), 0);
    CHECK(MPI_Wtime() - begin > 0.119);
}

/* So do waits for descriptors, until one of them is ready. */
static void descriptors(void) {
    struct itimerspec soon = {{0, 0}, {0, 20000000}};
    struct timeval long_time = {20, 0}, short_time = {0, 10000};
    struct timespec short_wait = {0, 10000000}, long_wait = {20, 0};
    struct epoll_event event = {.events = EPOLLIN}, found;
    int timer = timerfd_create(CLOCK_MONOTONIC, 0), set = epoll_create1(0);
    struct pollfd one = {.fd = timer, .events = POLLIN};
    fd_set some;
    CHECK(timer >= 0 && set >= 0);
    CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, timer, &event), 0);
    for (int way = 0; way < 4; way++) {
        FD_ZERO(&some);
        FD_SET(timer, &some);
        switch (way) {
        case 0: CHECK_EQ(select(timer + 1, &some, NULL, NULL, &short_time), 0); break;
        case 1: CHECK_EQ(epoll_wait(set, &found, 1, 10), 0); break;
        case 2: CHECK_EQ(ppoll(&one, 1, &short_wait, NULL), 0); break;
        default: CHECK_EQ(poll(&one, 1, 10), 0);
        }
        CHECK(way != 0 || !FD_ISSET(timer, &some));
        FD_SET(timer, &some);
        CHECK_EQ(timerfd_settime(timer, 0, &soon, NULL), 0);
        switch (way) {
        case 0: CHECK_EQ(select(timer + 1, &some, NULL, NULL, &long_time), 1); break;
        case 1: CHECK_EQ(epoll_wait(set, &found, 1, 20000), 1); break;
        case 2: CHECK_EQ(ppoll(&one, 1, &long_wait, NULL), 1); break;
        default: CHECK_EQ(poll(&one, 1, -1), 1);
        }
        CHECK(way != 0 || FD_ISSET(timer, &some));
        CHECK_EQ(timerfd_settime(timer, 0, &(struct itimerspec){{0, 0}, {0, 0}}, NULL), 0);
    }
    close(set);
    close(timer);
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
    case 4: descriptors(); break;
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
