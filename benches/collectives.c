// Collectives in one run: "table" prints the time of each blocking collective at four sizes, and how long the
// memory takes for the largest bcast and allreduce; "table NAME" only one of them; "nodes" the same without the memory;
// "small" that of each start and end of a nonblocking or persistent one of 8 bytes, and of short nonblocking ones;
// "overlap sleep|work N" how much of a nonblocking one of ranks 0 and 1 hides behind computation N times as long;
// "overlap sleep N nodes" the same between nodes.
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define BATCHES 3
#define REPEATS 301

static const size_t sizes[] = {8, 4 << 10, 64 << 10, 1 << 20};
static const size_t short_sizes[] = {8, 64, 512, 4 << 10};
static double *from, *to;
static int rank, ranks;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

enum {
    BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, ALLTOALLV, REDUCE_SCATTER, SCAN, EXSCAN,
    OPERATIONS
};
static const char *names[] = {"barrier",   "bcast",    "reduce",    "allreduce",      "gather", "scatter",
                              "allgather", "alltoall", "alltoallv", "reduce_scatter", "scan",   "exscan"};
static int *counts, *places; // of an alltoallv

static int has_blocks(int operation) { return operation >= GATHER && operation <= REDUCE_SCATTER; }

static void set_blocks(int count)
{
    for (int i = 0; counts[0] != count && i < ranks; i++)
        places[i] = i * count;
    for (int i = ranks - 1; i >= 0; i--)
        counts[i] = count;
}

static void run(int operation, size_t bytes, MPI_Comm comm)
{
    int count = bytes / 8;
    switch (operation) {
    case BARRIER: MPI_Barrier(comm); break;
    case BCAST: MPI_Bcast(from, count, MPI_DOUBLE, 0, comm); break;
    case REDUCE: MPI_Reduce(from, to, count, MPI_DOUBLE, MPI_SUM, 0, comm); break;
    case ALLREDUCE: MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, comm); break;
    case GATHER: MPI_Gather(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, 0, comm); break;
    case SCATTER: MPI_Scatter(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, 0, comm); break;
    case ALLGATHER: MPI_Allgather(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, comm); break;
    case ALLTOALL: MPI_Alltoall(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, comm); break;
    case ALLTOALLV:
        set_blocks(count);
        MPI_Alltoallv(from, counts, places, MPI_DOUBLE, to, counts, places, MPI_DOUBLE, comm);
        break;
    case REDUCE_SCATTER: MPI_Reduce_scatter_block(from, to, count, MPI_DOUBLE, MPI_SUM, comm); break;
    case SCAN: MPI_Scan(from, to, count, MPI_DOUBLE, MPI_SUM, comm); break;
    case EXSCAN: MPI_Exscan(from, to, count, MPI_DOUBLE, MPI_SUM, comm); break;
    }
}

static MPI_Request start(int operation, size_t bytes, MPI_Comm comm)
{
    int count = bytes / 8;
    MPI_Request request = MPI_REQUEST_NULL;
    switch (operation) {
    case BCAST: MPI_Ibcast(from, count, MPI_DOUBLE, 0, comm, &request); break;
    case BARRIER: MPI_Ibarrier(comm, &request); break;
    case REDUCE: MPI_Ireduce(from, to, count, MPI_DOUBLE, MPI_SUM, 0, comm, &request); break;
    case ALLREDUCE:
        MPI_Iallreduce(from, to, count, MPI_DOUBLE, MPI_SUM, comm, &request);
        break;
    case ALLGATHER:
        MPI_Iallgather(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, comm, &request);
        break;
    case ALLTOALL:
        MPI_Ialltoall(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, comm, &request);
        break;
    case ALLTOALLV:
        set_blocks(count);
        MPI_Ialltoallv(from, counts, places, MPI_DOUBLE, to, counts, places, MPI_DOUBLE, comm, &request);
        break;
    case GATHER: MPI_Igather(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, 0, comm, &request); break;
    case SCATTER: MPI_Iscatter(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, 0, comm, &request); break;
    case REDUCE_SCATTER:
        MPI_Ireduce_scatter_block(from, to, count, MPI_DOUBLE, MPI_SUM, comm, &request);
        break;
    case SCAN: MPI_Iscan(from, to, count, MPI_DOUBLE, MPI_SUM, comm, &request); break;
    case EXSCAN: MPI_Iexscan(from, to, count, MPI_DOUBLE, MPI_SUM, comm, &request); break;
    }
    return request;
}

enum { BLOCKING, NONBLOCKING, PERSISTENT };
static MPI_Request persistent[OPERATIONS];

// Makes the persistent operations of 8 bytes that `run_small` starts.
static void init_small(MPI_Comm comm)
{
    MPI_Barrier_init(comm, MPI_INFO_NULL, &persistent[BARRIER]);
    MPI_Bcast_init(from, 1, MPI_DOUBLE, 0, comm, MPI_INFO_NULL, &persistent[BCAST]);
    MPI_Reduce_init(from, to, 1, MPI_DOUBLE, MPI_SUM, 0, comm, MPI_INFO_NULL, &persistent[REDUCE]);
    MPI_Allreduce_init(from, to, 1, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL, &persistent[ALLREDUCE]);
}

static void run_as(int form, int operation, size_t bytes, MPI_Comm comm)
{
    if (form == BLOCKING) {
        run(operation, bytes, comm);
    } else if (form == NONBLOCKING) {
        MPI_Request request = start(operation, bytes, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Start(&persistent[operation]);
        MPI_Wait(&persistent[operation], MPI_STATUS_IGNORE);
    }
}

// Least mean of some batches, of which each takes about 20 ms.
static double measure(int form, int operation, size_t bytes)
{
    run_as(form, operation, bytes, MPI_COMM_WORLD);
    double before = seconds();
    run_as(form, operation, bytes, MPI_COMM_WORLD);
    run_as(form, operation, bytes, MPI_COMM_WORLD);
    int repeats = 0.02 / ((seconds() - before) / 2 + 1e-8);
    repeats = repeats < 3 ? 3 : repeats > 20000 ? 20000 : repeats;
    MPI_Bcast(&repeats, 1, MPI_INT, 0, MPI_COMM_WORLD);
    double best = 1e9;
    for (int batch = 0; batch < BATCHES; batch++) {
        MPI_Barrier(MPI_COMM_WORLD);
        before = seconds();
        for (int i = 0; i < repeats; i++)
            run_as(form, operation, bytes, MPI_COMM_WORLD);
        double mean = (seconds() - before) / repeats, slowest;
        MPI_Allreduce(&mean, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        best = slowest < best ? slowest : best;
    }
    return best;
}

// What an operation of `size` bytes has to move, done with plain loads and stores by all ranks of
// the node, each a share of the elements of all of them; nobody waits for anybody. Least mean of
// some batches, from the first to begin to the last to end, by a clock that all processes share.
static double memory_bound(int operation, size_t bytes)
{
    MPI_Win window;
    double *own, *blocks[64], best = 1e9;
    size_t count = bytes / 8, first = count * rank / ranks, last = count * (rank + 1) / ranks;
    MPI_Win_allocate_shared(2 * bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
    memset(own, 0, 2 * bytes);
    for (int i = 0; i < ranks; i++) {
        MPI_Aint size;
        int unit;
        MPI_Win_shared_query(window, i, &size, &unit, &blocks[i]);
    }
    for (int batch = 0; batch < BATCHES; batch++) {
        MPI_Barrier(MPI_COMM_WORLD);
        int repeats = 200;
        double before = seconds();
        for (int repeat = 0; repeat < repeats; repeat++)
            for (size_t at = first; at < last; at += 2048) {
                size_t end = at + 2048 < last ? at + 2048 : last, length = (end - at) * 8;
                double sum[2048], *source = operation == BCAST ? blocks[0] + at : sum;
                if (operation == ALLREDUCE) {
                    memcpy(sum, blocks[0] + at, length);
                    for (int i = 1; i < ranks; i++)
                        for (size_t j = 0; j < end - at; j++)
                            sum[j] += blocks[i][at + j];
                }
                for (int i = operation == BCAST; i < ranks; i++)
                    memcpy(blocks[i] + count + at, source, length);
            }
        double after = seconds(), first_began, last_ended;
        MPI_Allreduce(&before, &first_began, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&after, &last_ended, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        double mean = (last_ended - first_began) / repeats;
        best = mean < best ? mean : best;
    }
    MPI_Win_free(&window);
    return best;
}

// Nonblocking ones between nodes, each with its end.
static void nonblocking_table(const char *only)
{
    for (int operation = GATHER; operation < OPERATIONS; operation++)
        for (int i = 0; i < 3; i++) {
            if (sizes[i] * ranks > 2 << 20 || (only && strcmp(only, names[operation]) != 0))
                continue;
            double time = measure(NONBLOCKING, operation, sizes[i]);
            if (rank == 0)
                printf("i%s %zu B %.3f\n", names[operation], sizes[i], time * 1e6);
        }
}

// Barriers for a third of a second. The launchers of nodes of one machine are sessions of their own, to which Linux
// (sched_autogroup_enabled) gives shares of the CPUs that depend on what they did in the last tenths of a second: until
// the starts are forgotten, one of two ranks that share a CPU keeps it when it yields.
static void settle(void)
{
    double start = seconds(), spent = 0;
    while (spent < 0.3) {
        for (int i = 0; i < 10; i++) // few, as some take 20 ms each
            MPI_Barrier(MPI_COMM_WORLD);
        spent = seconds() - start;
        MPI_Bcast(&spent, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
}

static void table(const char *only, int is_one_node)
{
    for (int operation = 0; operation < (is_one_node ? ALLTOALLV : OPERATIONS); operation++)
        for (int i = 0; i < 4; i++) {
            if (only && strcmp(only, names[operation]) != 0)
                continue;
            if (operation == BARRIER && i > 0)
                break;
            if (has_blocks(operation) && sizes[i] * ranks > 2 << 20)
                continue;
            double time = measure(BLOCKING, operation, sizes[i]);
            if (rank == 0 && operation == BARRIER)
                printf("barrier %.3f\n", time * 1e6);
            else if (rank == 0)
                printf("%s %zu B %.3f\n", names[operation], sizes[i], time * 1e6);
            if (is_one_node && (operation == BCAST || operation == ALLREDUCE) && i == 3) {
                double bound = memory_bound(operation, sizes[i]);
                if (rank == 0)
                    printf("%s %zu B bound %.3f\n", names[operation], sizes[i], bound * 1e6);
            }
        }
}

static void small(void)
{
    static const char *forms[] = {"blocking", "nonblocking", "persistent"};
    init_small(MPI_COMM_WORLD);
    for (int operation = BARRIER; operation <= ALLREDUCE; operation++)
        for (int form = BLOCKING; form <= PERSISTENT; form++) {
            double time = measure(form, operation, 8);
            if (rank == 0)
                printf("%s, %s %.3f\n", names[operation], forms[form], time * 1e6);
        }
    for (int operation = BARRIER; operation <= ALLREDUCE; operation++)
        MPI_Request_free(&persistent[operation]);
    for (int operation = BCAST; operation < OPERATIONS; operation++)
        for (int i = 0; i < 4; i++) {
            double time = measure(NONBLOCKING, operation, short_sizes[i]);
            if (rank == 0)
                printf("i%s %zu B %.3f\n", names[operation], short_sizes[i], time * 1e6);
        }
}

static void compute(double length, int by_sleep)
{
    double end = seconds() + length;
    if (by_sleep) {
        struct timespec time = {0, length * 1e9};
        nanosleep(&time, NULL);
        return;
    }
    volatile double value = 1;
    while (seconds() < end)
        for (int i = 0; i < 100; i++)
            value = value * 1.0000001 + 1e-9;
}

static int in_order(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

// A repeat at one member, by a clock that all processes share.
typedef struct {
    double began, started, computed, ended;
} repeat_t;

// What a member spent on the operation: to start it, and to wait for it since the last member began.
static double exposed_at(const repeat_t *it, double last_began)
{
    double waits_from = it->computed > last_began ? it->computed : last_began;
    double waited = it->ended > waits_from ? it->ended - waits_from : 0;
    return it->started - it->began + waited;
}

// Median in microseconds, at member 0, of what one member spent: `who`, or the last to begin if that is -1.
static double median_exposed(const repeat_t *mine, int who, MPI_Comm pair)
{
    static repeat_t all[2][REPEATS];
    static double exposed[REPEATS];
    MPI_Gather(mine, 4 * REPEATS, MPI_DOUBLE, all, 4 * REPEATS, MPI_DOUBLE, 0, pair);
    for (int i = 0; i < REPEATS; i++) {
        int last = all[1][i].began > all[0][i].began;
        exposed[i] = exposed_at(&all[who < 0 ? last : who][i], all[last][i].began);
    }
    qsort(exposed, REPEATS, sizeof exposed[0], in_order);
    return exposed[REPEATS / 2] * 1e6;
}

// One CPU for this process: the first one, or the last one for whoever waits. Else a kernel that packs
// processes which often sleep on one CPU decides what is measured.
static void bind_to_cpu(int last)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    int cpus = CPU_COUNT(&all), seen = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && seen++ == (last ? cpus - 1 : 0))
            CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

// Starts an operation, computes for a while, waits.
static repeat_t overlapped(int operation, size_t bytes, MPI_Comm pair, double length, int by_sleep)
{
    repeat_t result;
    MPI_Barrier(pair);
    result.began = seconds();
    MPI_Request request = start(operation, bytes, pair);
    result.started = result.computed = seconds();
    if (length > 0) {
        compute(length, by_sleep);
        result.computed = seconds();
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    result.ended = seconds();
    return result;
}

// What it takes at least to have another CPU do something meanwhile, with the clocks that are read for it: to store a
// word that the last rank polls, and, after a sleep, to load one that it has stored. Median at rank 0, in microseconds.
static double hand_over(void)
{
    static double spent[REPEATS];
    MPI_Win window;
    MPI_Aint size;
    int unit, last = ranks - 1;
    volatile double *asked, *own;
    MPI_Win_allocate_shared(256, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
    MPI_Win_shared_query(window, 0, &size, &unit, &asked);
    volatile double *done = asked + 16;
    if (rank == 0)
        *asked = *done = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int repeat = 0; repeat < REPEATS && (rank == 0 || rank == last); repeat++) {
        if (rank == last) {
            while (*asked != repeat + 1)
                __builtin_ia32_pause();
            memcpy(to, from, sizes[2]);
            __atomic_thread_fence(__ATOMIC_RELEASE);
            *done = repeat + 1;
            continue;
        }
        compute(20e-6, 1);
        double began = seconds();
        *asked = repeat + 1;
        double started = seconds();
        compute(20e-6, 1);
        double computed = seconds();
        while (*done != repeat + 1)
            ;
        spent[repeat] = started - began + seconds() - computed;
    }
    qsort(spent, REPEATS, sizeof spent[0], in_order);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&window);
    return spent[REPEATS / 2] * 1e6;
}

// "sleep": ranks 0 and 1 sleep, and the others are idle, on a CPU of their own. "work": rank 0 works, on a CPU of
// its own, and rank 1 waits. By node: ranks are dealt out to two nodes in turn, and each node has a CPU, so that an
// idle rank runs while the member beside it sleeps.
static void overlap(int by_sleep, double lengths, int by_node)
{
    static repeat_t repeats[REPEATS];
    MPI_Comm pair;
    bind_to_cpu(by_node || ranks == 2 ? rank % 2 : rank >= 2);
    if (by_sleep && !by_node) {
        double least = hand_over();
        if (rank == 0)
            printf("hand-over %.3f\n", least);
    }
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, rank, &pair);
    if (rank >= 2) {
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    prctl(PR_SET_TIMERSLACK, 1);
    const int operations[] = {ALLREDUCE, ALLTOALL, BCAST, ALLGATHER};
    for (int which = 0; which < 4; which++)
        for (int i = 2; i < 4; i++) {
            int operation = operations[which];
            size_t bytes = sizes[i];
            for (int repeat = -20; repeat < REPEATS; repeat++)
                repeats[repeat < 0 ? 0 : repeat] = overlapped(operation, bytes, pair, 0, by_sleep);
            double pure = median_exposed(repeats, by_sleep ? -1 : 0, pair);
            MPI_Bcast(&pure, 1, MPI_DOUBLE, 0, pair);
            double length = by_sleep || rank == 0 ? pure * lengths * 1e-6 : 0;
            for (int repeat = 0; repeat < REPEATS; repeat++)
                repeats[repeat] = overlapped(operation, bytes, pair, length, by_sleep);
            double exposed = median_exposed(repeats, by_sleep ? -1 : 0, pair);
            if (rank == 0) {
                printf("i%s %zu KB pure %.3f\n", names[operation], sizes[i] >> 10, pure);
                printf("i%s %zu KB exposed %.3f\n", names[operation], sizes[i] >> 10, exposed);
            }
        }
    for (int idle = 2; rank == 0 && idle < ranks; idle++)
        MPI_Send(NULL, 0, MPI_INT, idle, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    size_t room = 4 << 20;
    from = aligned_alloc(4096, room);
    to = aligned_alloc(4096, room);
    counts = calloc(ranks, sizeof *counts);
    places = calloc(ranks, sizeof *places);
    memset(from, 0, room);
    memset(to, 0, room);
    if (argc > 3 && strcmp(argv[1], "overlap") == 0)
        overlap(strcmp(argv[2], "sleep") == 0, atof(argv[3]), argc > 4);
    else if (argc > 1 && strcmp(argv[1], "small") == 0)
        small();
    else if (argc > 1 && strcmp(argv[1], "nodes") == 0) {
        settle();
        table(argc > 2 ? argv[2] : NULL, 0);
        nonblocking_table(argc > 2 ? argv[2] : NULL);
    } else
        table(argc > 2 ? argv[2] : NULL, 1);
    MPI_Finalize();
    return 0;
}
