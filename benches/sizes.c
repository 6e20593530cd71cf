/*
 * Messages, one-sided operations and collectives of all sizes, timed as OSU's benchmarks time them; prints
 * microseconds. sizes messages|windows|collectives
 *
 * Buffers stay in the caches of their ranks, unless they are longer than these. A collective is timed alone, behind a
 * barrier that is not timed, and its time is the mean of all ranks'.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 4 << 20, WINDOW = 64, BATCHES = 5, MANY = 20000, PAGE = 4096 };
#define BATCH 2e-3 /* seconds that a batch is to take */
static const int sizes[] = {1,     8,     64,     256,    512,    1024,    2048,   4096,
                            8192,  16384, 32768,  65536,  131072, 262144,  524288, 1048576, LONGEST};
enum { SIZES = sizeof sizes / sizeof *sizes };

static int rank, ranks;
static char *from, *to;
static int *counts, *places, *shares; /* of collectives whose lengths differ */
static MPI_Datatype *types;
static MPI_Comm ring;
static MPI_Win win;

static void latency(int size)
{
    if (rank == 0) {
        MPI_Send(from, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(to, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(to, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(from, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    }
}

static void latency_any(int size)
{
    if (rank == 0) {
        MPI_Send(from, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(to, size, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(to, size, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(from, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    }
}

/* With both neighbours in a ring, as a program with halos does. */
static void halo(int size)
{
    MPI_Request requests[4];
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    MPI_Irecv(to, size, MPI_CHAR, left, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(to + size, size, MPI_CHAR, right, 5, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(from, size, MPI_CHAR, right, 4, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(from + size, size, MPI_CHAR, left, 5, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static void sendrecv(int size)
{
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    MPI_Sendrecv(from, size, MPI_CHAR, right, 6, to, size, MPI_CHAR, left, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* A window of messages, and a word that all have come. */
static void window(int size, int sends, int receives)
{
    MPI_Request requests[2 * WINDOW];
    int count = 0, other = 1 - rank;
    for (int i = 0; i < WINDOW && receives; i++)
        MPI_Irecv(to, size, MPI_CHAR, other, 2, MPI_COMM_WORLD, &requests[count++]);
    for (int i = 0; i < WINDOW && sends; i++)
        MPI_Isend(from, size, MPI_CHAR, other, 2, MPI_COMM_WORLD, &requests[count++]);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    if (rank == 1)
        MPI_Send(from, 4, MPI_CHAR, 0, 3, MPI_COMM_WORLD);
    else
        MPI_Recv(to, 4, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void one_way(int size) { if (rank < 2) window(size, rank == 0, rank == 1); }
static void both_ways(int size) { if (rank < 2) window(size, 1, 1); }

static void flushed(void) { MPI_Win_flush(1, win); }
static void put(int size) { MPI_Put(from, size, MPI_CHAR, 1, 0, size, MPI_CHAR, win); }
static void get(int size) { MPI_Get(to, size, MPI_CHAR, 1, 0, size, MPI_CHAR, win); }
static void put_flush(int size) { put(size), flushed(); }
static void get_flush(int size) { get(size), flushed(); }
static void puts_flush(int size) { for (int i = 0; i < WINDOW; i++) put(size); flushed(); }
static void gets_flush(int size) { for (int i = 0; i < WINDOW; i++) get(size); flushed(); }

static void accumulate(int size)
{
    MPI_Accumulate(from, size / 4, MPI_INT, 1, 0, size / 4, MPI_INT, MPI_SUM, win);
    flushed();
}

static void get_accumulate(int size)
{
    MPI_Get_accumulate(from, size / 4, MPI_INT, to, size / 4, MPI_INT, 1, 0, size / 4, MPI_INT, MPI_SUM, win);
    flushed();
}

static void fetch_and_op(int size)
{
    (void)size;
    MPI_Fetch_and_op(from, to, MPI_LONG, 1, 0, MPI_SUM, win);
    flushed();
}

static void compare_and_swap(int size)
{
    (void)size;
    MPI_Compare_and_swap(from, from, to, MPI_LONG, 1, 0, win);
    flushed();
}

static void barrier(int size) { (void)size, MPI_Barrier(MPI_COMM_WORLD); }
static void bcast(int size) { MPI_Bcast(from, size, MPI_CHAR, 0, MPI_COMM_WORLD); }
static void reduce(int size) { MPI_Reduce(from, to, size / 4, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD); }
static void allreduce(int size) { MPI_Allreduce(from, to, size / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
static void scan(int size) { MPI_Scan(from, to, size / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
static void gather(int size) { MPI_Gather(from, size, MPI_CHAR, to, size, MPI_CHAR, 0, MPI_COMM_WORLD); }
static void scatter(int size) { MPI_Scatter(from, size, MPI_CHAR, to, size, MPI_CHAR, 0, MPI_COMM_WORLD); }
static void allgather(int size) { MPI_Allgather(from, size, MPI_CHAR, to, size, MPI_CHAR, MPI_COMM_WORLD); }
static void alltoall(int size) { MPI_Alltoall(from, size, MPI_CHAR, to, size, MPI_CHAR, MPI_COMM_WORLD); }

static void allgatherv(int size)
{
    MPI_Allgatherv(from, size, MPI_CHAR, to, counts, places, MPI_CHAR, MPI_COMM_WORLD);
}

static void gatherv(int size)
{
    MPI_Gatherv(from, size, MPI_CHAR, to, counts, places, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void scatterv(int size)
{
    MPI_Scatterv(from, counts, places, MPI_CHAR, to, size, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void alltoallw(int size)
{
    (void)size;
    MPI_Alltoallw(from, counts, places, types, to, counts, places, types, MPI_COMM_WORLD);
}

static void neighbor_alltoall(int size) { MPI_Neighbor_alltoall(from, size, MPI_CHAR, to, size, MPI_CHAR, ring); }

static void exscan(int size) { MPI_Exscan(from, to, size / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }

static void reduce_scatter_block(int size)
{
    MPI_Reduce_scatter_block(from, to, size / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void alltoallv(int size)
{
    (void)size;
    MPI_Alltoallv(from, counts, places, MPI_CHAR, to, counts, places, MPI_CHAR, MPI_COMM_WORLD);
}

static void reduce_scatter(int size)
{
    (void)size;
    MPI_Reduce_scatter(from, to, shares, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

typedef struct {
    const char *name;
    void (*act)(int size);
    int least, most, of; /* sizes, and messages of a call */
} Operation;

static const Operation messages[] = {
    {"latency", latency, 1, LONGEST, 2},
    {"latency, any source and tag", latency_any, 1, LONGEST / 64, 2},
    {"sendrecv", sendrecv, 1, LONGEST, 1},
    {"halo", halo, 1, LONGEST / 4, 1},
    {"64 isends", one_way, 1, LONGEST, 1},
    {"64 isends both ways", both_ways, 1, LONGEST, 1},
    {0},
};
static const Operation windows[] = {
    {"put", put_flush, 8, LONGEST, 1},
    {"64 puts", puts_flush, 8, LONGEST, 1},
    {"get", get_flush, 8, LONGEST, 1},
    {"64 gets", gets_flush, 8, LONGEST, 1},
    {"accumulate", accumulate, 8, LONGEST, 1},
    {"get_accumulate", get_accumulate, 8, LONGEST, 1},
    {"fetch_and_op", fetch_and_op, 8, 8, 1},
    {"compare_and_swap", compare_and_swap, 8, 8, 1},
    {0},
};
static const Operation collectives[] = {
    {"barrier", barrier, 8, 8, 1},
    {"bcast", bcast, 8, LONGEST, 1},
    {"reduce", reduce, 8, LONGEST, 1},
    {"allreduce", allreduce, 8, LONGEST, 1},
    {"gather", gather, 8, LONGEST / 4, 1},
    {"scatter", scatter, 8, LONGEST / 4, 1},
    {"allgather", allgather, 8, LONGEST / 4, 1},
    {"allgatherv", allgatherv, 8, LONGEST / 4, 1},
    {"alltoall", alltoall, 8, LONGEST / 4, 1},
    {"alltoallv", alltoallv, 8, LONGEST / 4, 1},
    {"gatherv", gatherv, 8, LONGEST / 4, 1},
    {"scatterv", scatterv, 8, LONGEST / 4, 1},
    {"alltoallw", alltoallw, 8, LONGEST / 4, 1},
    {"neighbor_alltoall", neighbor_alltoall, 8, LONGEST / 4, 1},
    {"reduce_scatter", reduce_scatter, 8, LONGEST / 4, 1},
    {"reduce_scatter_block", reduce_scatter_block, 8, LONGEST / 4, 1},
    {"scan", scan, 8, LONGEST, 1},
    {"exscan", exscan, 8, LONGEST, 1},
    {0},
};

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of a call. */
static double batch(const Operation *it, int size, int calls)
{
    double start = MPI_Wtime();
    for (int i = 0; i < calls; i++)
        it->act(size);
    return (MPI_Wtime() - start) / calls;
}

/* The same of calls that all ranks begin together. */
static double apart(const Operation *it, int size, int calls)
{
    double sum = 0, mean = 0;
    for (int i = 0; i < calls; i++) {
        double start = MPI_Wtime();
        it->act(size);
        sum += MPI_Wtime() - start;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Allreduce(&sum, &mean, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return mean / ranks / calls;
}

/* `is_alone`: only rank 0 calls, and the others wait. */
static void measure(const Operation *it, int size, double (*time)(const Operation *, int, int), int is_alone)
{
    double each[BATCHES];
    MPI_Barrier(MPI_COMM_WORLD);
    if (!is_alone || rank == 0) {
        double once = time(it, size, 3);
        int calls = 0;
        once = time(it, size, 3);
        calls = once > 0 && BATCH / once < MANY ? (int)(BATCH / once) + 2 : MANY;
        if (!is_alone)
            MPI_Bcast(&calls, 1, MPI_INT, 0, MPI_COMM_WORLD);
        for (int i = 0; i < BATCHES; i++)
            each[i] = time(it, size, calls);
        qsort(each, BATCHES, sizeof *each, ascending);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        const char *unit = size < 1024 ? "B" : size < 1 << 20 ? "KB" : "MB";
        int shown = size < 1024 ? size : size < 1 << 20 ? size >> 10 : size >> 20;
        printf("%s %d %s %.4f\n", it->name, shown, unit, each[BATCHES / 2] * 1e6 / it->of);
        fflush(stdout);
    }
}

static void set_lengths(int size)
{
    for (int i = 0; i < ranks; i++) {
        counts[i] = size;
        places[i] = i * size;
        shares[i] = size / 4;
    }
}

/* Each size, or each other one. */
static void measure_all(const Operation *list, double (*time)(const Operation *, int, int), int is_alone, int step)
{
    for (const Operation *it = list; it->name; it++)
        for (int i = step - 1; i < SIZES; i += step)
            if (it->least <= sizes[i] && sizes[i] <= it->most) {
                set_lengths(sizes[i]);
                measure(it, sizes[i], time, is_alone);
            }
}

static void *buffer(size_t bytes)
{
    void *made = NULL;
    if (posix_memalign(&made, PAGE, bytes) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return memset(made, 0, bytes);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    size_t bytes = LONGEST / 4 * (size_t)(ranks > 4 ? ranks : 4);
    from = buffer(bytes), to = buffer(bytes);
    counts = buffer(3 * ranks * sizeof *counts), places = counts + ranks, shares = places + ranks;
    types = buffer(ranks * sizeof *types);
    for (int i = 0; i < ranks; i++)
        types[i] = MPI_CHAR;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, (int[]){1}, 0, &ring);
    const char *what = argc > 1 ? argv[1] : "messages";
    if (strcmp(what, "messages") == 0)
        measure_all(messages, batch, 0, 1);
    if (strcmp(what, "collectives") == 0)
        measure_all(collectives, apart, 0, 2);
    if (strcmp(what, "windows") == 0) {
        void *memory;
        MPI_Win_allocate(LONGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
        memset(memory, 0, LONGEST);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        measure_all(windows, batch, 1, 1);
        if (rank == 0)
            MPI_Win_unlock(1, win);
        MPI_Win_free(&win);
    }
    MPI_Comm_free(&ring);
    MPI_Finalize();
    return 0;
}
