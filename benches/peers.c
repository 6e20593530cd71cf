/* Latencies and rates of one MPI, one line each: NAME MICROSECONDS (or, for the rate, messages
 * per microsecond). `peers.py` compiles this file against every peer and compares the lines.
 *   peers pair [N] 2 ranks, pinned to cores 0 and 1; N times fewer repetitions
 *   peers crowd    any number of ranks, not pinned
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { BATCHES = 7, WINDOW = 64, LARGEST = 4 << 20 };
static int rank, size, fewer = 1;
static char *out, *in;

static void pin(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef void step(int bytes);

/* A ping-pong's last message must be what the other side sent. */
static void verify(int bytes) {
    if (memcmp(in, out, (size_t)bytes) == 0) return;
    fprintf(stderr, "rank %d: %d bytes did not arrive\n", rank, bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void ping_pong(int bytes) {
    if (rank == 0) MPI_Send(out, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(in, bytes, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(out, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
}

/* The same of data that each side writes before it sends them, as programs do. A receiver that read the buffer itself
 * shares its lines, which have to come back to the sender's core first. */
static void filled(int bytes) {
    if (rank == 0) memset(out, 5, (size_t)bytes);
    if (rank == 0) MPI_Send(out, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(in, bytes, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) memset(out, 5, (size_t)bytes);
    if (rank == 1) MPI_Send(out, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
}

/* The receiver reads what has come as well, so it has all lines of the buffer. */
static void filled_and_read(int bytes) {
    static volatile long sum;
    long words = 0;
    filled(bytes);
    for (int i = 0; i < bytes; i += 64) words += in[i];
    sum += words;
}

/* Both fill and send at a time, as neighbours in a grid do. */
static void exchanged(int bytes) {
    MPI_Request requests[2];
    memset(out, 5, (size_t)bytes);
    MPI_Irecv(in, bytes, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, bytes, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void sendrecv(int bytes) {
    memset(out, 5, (size_t)bytes);
    MPI_Sendrecv(out, bytes, MPI_CHAR, 1 - rank, 1, in, bytes, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void window(int bytes) {
    MPI_Request requests[WINDOW];
    for (int i = 0; i < WINDOW; i++) {
        if (rank == 0) MPI_Isend(out, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &requests[i]);
        else MPI_Irecv(in + i * bytes, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    if (rank == 0) MPI_Recv(in, 0, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else MPI_Send(out, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
}

static void barrier(int bytes) {
    (void)bytes;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void allreduce(int bytes) {
    MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* Median over batches of the time of one step, in microseconds; as rank 0 sees it. */
static double time_of(step *step, int bytes, int count) {
    count = count > fewer ? count / fewer : 1;
    double batch[BATCHES];
    for (int b = -1; b < BATCHES; b++) { /* batch -1 warms up */
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        for (int i = 0; i < count; i++) step(bytes);
        if (b >= 0) batch[b] = (MPI_Wtime() - begin) * 1e6 / count;
    }
    qsort(batch, BATCHES, sizeof *batch, ascending);
    return batch[BATCHES / 2];
}

static void print(const char *name, double value) {
    if (rank == 0) printf("%s %.4f\n", name, value);
}

static void pair(void) {
    static const struct { const char *name; step *step; int bytes, count; } sizes[] = {
        {"latency 8 B", ping_pong, 8, 20000},         {"latency 512 B", ping_pong, 512, 20000},
        {"latency 4 KB", ping_pong, 4 << 10, 10000},  {"latency 16 KB", ping_pong, 16 << 10, 5000},
        {"latency 64 KB", ping_pong, 64 << 10, 2000}, {"latency 256 KB", ping_pong, 256 << 10, 500},
        {"latency 1 MB", ping_pong, 1 << 20, 200},
        {"latency 4 MB", ping_pong, 4 << 20, 40},     {"4 KB, filled each time", filled, 4 << 10, 10000},
        {"64 KB, filled each time", filled, 64 << 10, 2000}, {"1 MB, filled each time", filled, 1 << 20, 200},
        {"512 KB, filled and read", filled_and_read, 512 << 10, 300},
        {"1 MB, filled and read", filled_and_read, 1 << 20, 200},
    };
    pin(rank);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(in, 0, LARGEST);
        double both_ways = time_of(sizes[i].step, sizes[i].bytes, sizes[i].count);
        verify(sizes[i].bytes);
        print(sizes[i].name, both_ways / 2);
    }
    print("64 KB, filled, Isend and Irecv", time_of(exchanged, 64 << 10, 2000));
    verify(64 << 10);
    print("64 KB, filled, Sendrecv", time_of(sendrecv, 64 << 10, 2000));
    verify(64 << 10);
    print("rate 8 B (M/s)", WINDOW / time_of(window, 8, 1000));
    print("barrier, 2 ranks", time_of(barrier, 0, 20000));
    print("allreduce 8 B, 2 ranks", time_of(allreduce, 8, 20000));
    print("allreduce 1 MB, 2 ranks", time_of(allreduce, 1 << 20, 100));
}

static void crowd(void) {
    char name[64];
    snprintf(name, sizeof name, "barrier, %d ranks", size);
    print(name, time_of(barrier, 0, 300));
    snprintf(name, sizeof name, "allreduce 8 B, %d ranks", size);
    print(name, time_of(allreduce, 8, 300));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    out = malloc(LARGEST);
    in = malloc(LARGEST);
    /* Written with more than zeros: a compiler makes malloc and zeros a calloc, and a page that
     * was never written is one page of zeros, always in the cache. */
    for (int i = 0; i < LARGEST; i++) out[i] = (char)(i * 7 + 1);
    memset(in, 1, LARGEST);
    if (argc > 2) fewer = atoi(argv[2]);
    if (argc > 1 && strcmp(argv[1], "crowd") == 0) crowd();
    else pair();
    MPI_Finalize();
    return 0;
}
