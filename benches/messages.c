/* Persistent, partitioned and vector messages, matching with long queues, and threads, of one MPI:
 * one line each, NAME VALUE. `messages.py` compiles this file against every peer.
 *   messages kinds      2 ranks, pinned: persistent and vector messages, packing
 *   messages parts      2 ranks, pinned: partitioned messages (an MPI without them fails here only)
 *   messages matching   2 ranks, pinned: nanoseconds per receive with 1, 100 and 10,000 waiting
 *   messages threads N  2 ranks, N threads each: 8-byte messages per microsecond in total
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { BATCHES = 7, WINDOW = 64, DOUBLES = 1 << 16, PARTS = 16, QUEUE = 10000, THREADS = 8 };
static int rank;
static double out[2 * DOUBLES], in[2 * DOUBLES], packed[DOUBLES];

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

static void print(const char *name, double value) {
    if (rank == 0) printf("%s %.4f\n", name, value);
}

static void sync_ranks(void) { MPI_Barrier(MPI_COMM_WORLD); }

/* Median over batches of the time of one step, in microseconds; batch -1 warms up. */
static double time_of(void (*step)(void), int count) {
    double batch[BATCHES];
    for (int b = -1; b < BATCHES; b++) {
        sync_ranks();
        double begin = MPI_Wtime();
        for (int i = 0; i < count; i++) step();
        if (b >= 0) batch[b] = (MPI_Wtime() - begin) * 1e6 / count;
    }
    qsort(batch, BATCHES, sizeof *batch, ascending);
    return batch[BATCHES / 2];
}

static MPI_Request to, from, window_requests[WINDOW];

static void persistent_ping_pong(void) {
    MPI_Request *first = rank == 0 ? &to : &from, *second = rank == 0 ? &from : &to;
    MPI_Start(first);
    MPI_Wait(first, MPI_STATUS_IGNORE);
    MPI_Start(second);
    MPI_Wait(second, MPI_STATUS_IGNORE);
}

static void acknowledge(void) {
    if (rank == 0) MPI_Recv(in, 0, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else MPI_Send(out, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
}

static void persistent_window(void) {
    MPI_Startall(WINDOW, window_requests);
    MPI_Waitall(WINDOW, window_requests, MPI_STATUSES_IGNORE);
    acknowledge();
}

static MPI_Datatype element;
static int elements;

static void typed_ping_pong(void) {
    if (rank == 0) MPI_Send(out, elements, element, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(in, elements, element, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(out, elements, element, 0, 1, MPI_COMM_WORLD);
}

static void pack_by_type(void) {
    int position = 0;
    MPI_Pack(out, 1, element, packed, sizeof packed, &position, MPI_COMM_WORLD);
}

static void pack_by_hand(void) {
    for (int i = 0; i < DOUBLES; i++) packed[i] = out[2 * i];
    __asm__ volatile("" ::"r"(packed) : "memory");
}

static void kinds(void) {
    MPI_Send_init(out, 8, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, &to);
    MPI_Recv_init(in, 8, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, &from);
    print("persistent latency 8 B (us)", time_of(persistent_ping_pong, 10000) / 2);
    for (int i = 0; i < WINDOW; i++) {
        if (rank == 0) MPI_Send_init(out, 8, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &window_requests[i]);
        else MPI_Recv_init(in + i, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &window_requests[i]);
    }
    print("rate persistent 8 B (M/s)", WINDOW / time_of(persistent_window, 1000));
    static const int counts[] = {64, 1024, DOUBLES};
    for (int i = 0; i < 3; i++) {
        char name[64];
        MPI_Type_vector(counts[i], 1, 2, MPI_DOUBLE, &element);
        MPI_Type_commit(&element);
        elements = 1;
        snprintf(name, sizeof name, "vector latency %d doubles (us)", counts[i]);
        print(name, time_of(typed_ping_pong, 2000000 / (counts[i] + 500)) / 2);
        if (i < 2) MPI_Type_free(&element);
    }
    double by_type = time_of(pack_by_type, 200), by_hand = time_of(pack_by_hand, 200);
    print("pack vector of doubles / hand-written loop", by_type / by_hand);
    MPI_Type_free(&element);
}

static int part_bytes;

static void parts_round(void) {
    MPI_Request *mine = rank == 0 ? &to : &from;
    MPI_Start(mine);
    if (rank == 0) for (int i = 0; i < PARTS; i++) MPI_Pready(i, to);
    MPI_Wait(mine, MPI_STATUS_IGNORE);
    acknowledge();
}

static void parts(void) {
    static const int sizes[] = {8, 4096, 32768};
    for (int i = 0; i < 3; i++) {
        char name[64];
        part_bytes = sizes[i];
        if (rank == 0) MPI_Psend_init(out, PARTS, part_bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &to);
        else MPI_Precv_init(in, PARTS, part_bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &from);
        snprintf(name, sizeof name, "16 partitions of %d B (us)", part_bytes);
        print(name, time_of(parts_round, 2000));
        MPI_Request_free(rank == 0 ? &to : &from);
    }
}

static MPI_Request queue_requests[QUEUE];

/* Nanoseconds per message when `waiting` messages, or receives, wait before the first one matches:
 * the last one comes first. */
static double match(int waiting, int source, int posted) {
    double best = 1e30;
    int rounds = 20000 / waiting + 3;
    for (int round = 0; round < rounds; round++) {
        double begin = 0;
        sync_ranks();
        if (posted && rank == 1)
            for (int i = 0; i < waiting; i++)
                MPI_Irecv(in, 1, MPI_CHAR, source, i, MPI_COMM_WORLD, &queue_requests[i]);
        sync_ranks();
        begin = MPI_Wtime();
        if (rank == 0)
            for (int i = 0; i < waiting; i++)
                MPI_Send(out, 1, MPI_CHAR, 1, posted ? waiting - 1 - i : i, MPI_COMM_WORLD);
        if (posted && rank == 1) MPI_Waitall(waiting, queue_requests, MPI_STATUSES_IGNORE);
        if (!posted) {
            if (rank == 0) MPI_Send(out, 1, MPI_CHAR, 1, QUEUE, MPI_COMM_WORLD);
            /* Behind all others, so that they all are unexpected now. */
            else MPI_Recv(in, 1, MPI_CHAR, 0, QUEUE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            sync_ranks();
            begin = MPI_Wtime();
            if (rank == 1)
                for (int i = waiting - 1; i >= 0; i--)
                    MPI_Recv(in, 1, MPI_CHAR, source, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        double took = (MPI_Wtime() - begin) * 1e9 / waiting;
        if (took < best) best = took;
    }
    return best; /* as the receiver sees it */
}

static void matching(void) {
    static const int waiting[] = {1, 100, QUEUE};
    for (int posted = 0; posted < 2; posted++)
        for (int wild = 0; wild < 2; wild++)
            for (int i = 0; i < 3; i++) {
                char name[96];
                snprintf(name, sizeof name, "%d %s, %s source (ns)", waiting[i],
                         posted ? "posted" : "unexpected", wild ? "any" : "exact");
                double value = match(waiting[i], wild ? MPI_ANY_SOURCE : 0, posted);
                if (rank == 1) printf("%s %.4f\n", name, value);
            }
}

static MPI_Comm comms[THREADS];
enum { THREAD_ROUNDS = 300 };

static void *exchange(void *argument) {
    MPI_Comm comm = comms[(long)argument];
    MPI_Request requests[WINDOW];
    char bytes[WINDOW * 8] = {0};
    for (int round = 0; round < THREAD_ROUNDS; round++) {
        for (int i = 0; i < WINDOW; i++)
            if (rank == 0) MPI_Isend(bytes + 8 * i, 8, MPI_CHAR, 1, 1, comm, &requests[i]);
            else MPI_Irecv(bytes + 8 * i, 8, MPI_CHAR, 0, 1, comm, &requests[i]);
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (rank == 0) MPI_Recv(bytes, 0, MPI_CHAR, 1, 2, comm, MPI_STATUS_IGNORE);
        else MPI_Send(bytes, 0, MPI_CHAR, 0, 2, comm);
    }
    return NULL;
}

static void threads(int count) {
    pthread_t handles[THREADS];
    char name[64];
    double best = 0;
    for (int t = 0; t < count; t++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
    for (int round = 0; round < 4; round++) {
        sync_ranks();
        double begin = MPI_Wtime();
        for (long t = 0; t < count; t++) pthread_create(&handles[t], NULL, exchange, (void *)t);
        for (int t = 0; t < count; t++) pthread_join(handles[t], NULL);
        double rate = (double)count * THREAD_ROUNDS * WINDOW / ((MPI_Wtime() - begin) * 1e6);
        if (rate > best) best = rate;
    }
    snprintf(name, sizeof name, "rate 8 B, %d threads (M/s)", count);
    print(name, best);
}

int main(int argc, char **argv) {
    int level;
    const char *mode = argc > 1 ? argv[1] : "kinds";
    int is_threads = strcmp(mode, "threads") == 0;
    MPI_Init_thread(&argc, &argv, is_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 2 * DOUBLES; i++) out[i] = i, in[i] = 1;
    if (!is_threads) pin(rank);
    if (is_threads) threads(atoi(argv[2]));
    else if (strcmp(mode, "parts") == 0) parts();
    else if (strcmp(mode, "matching") == 0) matching();
    else kinds();
    MPI_Finalize();
    return 0;
}
