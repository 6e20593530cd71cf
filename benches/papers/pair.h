/* What the programs share: a pair of ranks, of which the receiver measures, medians, and computation that
   calls no MPI. Further ranks only wait, for the pair's end. Every line of output is "series x median low high", where
   low and high are the quartiles of the repeats. Under PAPERS_COMPUTE=sleep ranks sleep in place of computing, so that
   their CPUs are free for dedicated workers. */
#ifndef PAIR_H
#define PAIR_H
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS_MAX = 400, LONGEST = 1 << 20 };
static const int lengths[] = {16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20};
enum { LENGTHS = sizeof lengths / sizeof *lengths };
static int rank;
static char *buffer;
static MPI_Comm pair;

static double now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec * 1e-3;
}

/* Returns how long the computation was to take; that of a rank that sleeps takes as long as its sleep did. */
__attribute__((unused)) static double compute_us(double length) {
    static int sleeps = -1;
    double begun = now_us(), end = begun + length;
    if (sleeps < 0) sleeps = getenv("PAPERS_COMPUTE") != NULL;
    if (sleeps && length > 0) {
        struct timespec pause = {(time_t)(length / 1e6), (long)(length * 1e3) % 1000000000};
        nanosleep(&pause, NULL);
        return now_us() - begun;
    }
    while (now_us() < end) continue;
    return length;
}

static int compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

struct spread {
    double median, low, high;
};

/* Sorts the values. */
__attribute__((unused)) static struct spread spread_of(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return (struct spread){values[count / 2], values[count / 4], values[3 * count / 4]};
}

__attribute__((unused)) static double median(double *values, int count) { return spread_of(values, count).median; }

__attribute__((unused)) static void show(const char *series, double x, struct spread values) {
    printf("%s %g %.4f %.4f %.4f\n", series, x, values.median, values.low, values.high);
}

static void begin(int *argc, char ***argv) {
    setvbuf(stdout, NULL, _IOLBF, 0); // what comes before a time limit counts
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    buffer = malloc(LONGEST);
    memset(buffer, rank, LONGEST);
}

/* For programs of a pair: ranks from the third on do not return. */
__attribute__((unused)) static void begin_pair(int *argc, char ***argv) {
    begin(argc, argv);
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2, rank, &pair);
    if (rank >= 2) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Comm_free(&pair);
        MPI_Finalize();
        exit(0);
    }
}

__attribute__((unused)) static int end_pair(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&pair);
    return MPI_Finalize();
}

/* The receiver posts, lets the sender go, computes, and waits; returns its time from the posting to the end of the
   wait, less `hidden` times the computation. The sender's data so always comes after the receive (PEF, scenario 3). */
__attribute__((unused)) static double late_message(int length, double computation, double hidden) {
    MPI_Request request;
    double start = now_us(), computed = 0;
    if (rank == 0) {
        MPI_Irecv(buffer, length, MPI_BYTE, 1, 0, pair, &request);
        MPI_Send(NULL, 0, MPI_BYTE, 1, 1, pair);
        if (computation > 0) computed = compute_us(computation);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, pair, MPI_STATUS_IGNORE);
        MPI_Isend(buffer, length, MPI_BYTE, 0, 0, pair, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return now_us() - start - hidden * computed;
}

/* Times of `rounds` late messages, those of the receiver at both ranks. */
__attribute__((unused)) static struct spread late_messages(int length, double computation, double hidden, int rounds) {
    double times[ROUNDS_MAX];
    struct spread all;
    for (int round = 0; round < rounds; round++) {
        MPI_Barrier(pair);
        times[round] = late_message(length, computation, hidden);
    }
    all = spread_of(times, rounds);
    MPI_Bcast(&all, 3, MPI_DOUBLE, 0, pair);
    return all;
}
#endif
