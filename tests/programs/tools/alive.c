/* Programs that stand still for a while, and go on: `alive WHY`, on 3 ranks. Each takes more than a second. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int me, size, value = 1;

static void pause_for(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left) != 0)
        ;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void receive(int from)
{
    MPI_Recv(&value, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send(int to)
{
    MPI_Send(&value, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
}

/* The others wait for rank 0, which sleeps. */
static void sleeps(void)
{
    if (me == 0)
        pause_for(1.5);
}

static void computes(void)
{
    double until = now() + 1.5;
    while (me == 0 && now() < until)
        value += 2;
}

/* A thread of rank 0 sends what its main thread, and all others, wait for. */
static void *sends_later(void *nothing)
{
    pause_for(1.5);
    for (int to = 0; to < size; to++)
        send(to);
    return nothing;
}

static void thread_sends(void)
{
    pthread_t thread;
    if (me == 0)
        pthread_create(&thread, NULL, sends_later, NULL);
    receive(0);
    if (me == 0)
        pthread_join(thread, NULL);
}

static volatile sig_atomic_t came;

static void note(int signal)
{
    (void)signal;
    came = 1;
}

static MPI_Request later;

static void complete_later(int signal)
{
    (void)signal;
    MPI_Grequest_complete(later);
}

static int query(void *extra, MPI_Status *status)
{
    (void)extra;
    MPI_Status_set_elements(status, MPI_INT, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int nothing(void *extra)
{
    (void)extra;
    return MPI_SUCCESS;
}

static int no_cancel(void *extra, int complete)
{
    (void)extra;
    (void)complete;
    return MPI_SUCCESS;
}

/* Rank 0 waits for a request that its handler of SIGALRM completes, the others for rank 0. */
static void handler_completes(void)
{
    if (me == 0) {
        struct itimerval once = {{0, 0}, {1, 500000}};
        MPI_Grequest_start(query, nothing, no_cancel, NULL, &later);
        signal(SIGALRM, complete_later);
        setitimer(ITIMER_REAL, &once, NULL);
        MPI_Wait(&later, MPI_STATUS_IGNORE);
    }
}

/* Rank 0 waits for a signal outside of MPI. */
static void handler_waits(void)
{
    if (me == 0) {
        signal(SIGALRM, note);
        alarm(2);
        while (!came)
            pause();
    }
}

static void *completes(void *none)
{
    pause_for(1.5);
    MPI_Grequest_complete(later);
    return none;
}

static void generalized(void)
{
    pthread_t thread;
    MPI_Grequest_start(query, nothing, no_cancel, NULL, &later);
    pthread_create(&thread, NULL, completes, NULL);
    MPI_Wait(&later, MPI_STATUS_IGNORE);
    pthread_join(thread, NULL);
}

static void probes(void)
{
    double until = now() + 1.5;
    int flag = 0;
    if (me != 0)
        return receive(0);
    while (now() < until)
        MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    for (int to = 1; to < size; to++)
        send(to);
}

static void tests(void)
{
    MPI_Request request;
    double until = now() + 1.5;
    int flag = 0, never;
    if (me != 0)
        return receive(0);
    MPI_Irecv(&never, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, &request);
    while (now() < until)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int to = 1; to < size; to++)
        send(to);
}

/* The others wait for a lock that rank 0 holds while it sleeps. */
static void passive_target(void)
{
    int *memory;
    MPI_Win win;
    MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    if (me == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0)
        pause_for(1.5);
    else
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
}

/* Rank 0 stops itself; a child of it, which is no rank, has it go on. */
static void stopped(void)
{
    if (me == 0) {
        pid_t self = getpid(), child = fork();
        if (child == 0) {
            pause_for(1.5);
            kill(self, SIGCONT);
            _exit(0);
        }
        raise(SIGSTOP);
        while (waitpid(child, NULL, 0) < 0)
            ;
    }
}

/* The others wait until rank 0 closes its port. */
static void port(void)
{
    char name[MPI_MAX_PORT_NAME];
    if (me == 0 && MPI_Open_port(MPI_INFO_NULL, name) == MPI_SUCCESS) {
        pause_for(1.5);
        MPI_Close_port(name);
    }
}

/* Rank 0 and the last one answer each other; over a slow link all ranks sleep most of the time, also while a collective
 * goes on without them. */
static void answers(void)
{
    MPI_Request request;
    int sum, own = 1;
    for (int round = 0; round < 4; round++) {
        MPI_Iallreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (me == 0) {
            pause_for(0.4);
            send(size - 1);
            receive(size - 1);
        } else if (me == size - 1) {
            receive(0);
            send(0);
        }
    }
}

int main(int argc, char **argv)
{
    struct {
        const char *name;
        void (*run)(void);
    } reasons[] = {
        {"sleeps", sleeps},
        {"computes", computes},
        {"thread_sends", thread_sends},
        {"handler_completes", handler_completes},
        {"handler_waits", handler_waits},
        {"generalized", generalized},
        {"probes", probes},
        {"tests", tests},
        {"passive_target", passive_target},
        {"stopped", stopped},
        {"port", port},
        {"answers", answers},
    };
    int level, found = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (unsigned i = 0; argc > 1 && i < sizeof reasons / sizeof *reasons; i++)
        if (strcmp(argv[1], reasons[i].name) == 0) {
            reasons[i].run();
            found = 1;
        }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (me == 0 && found)
        puts("passed");
    return !found;
}
