/* What the programs share: a pair of ranks, of which the receiver measures, medians, and computation that
   calls no MPI. Further ranks only wait, for the pair's end. Every line of output is "series x y". */
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

__attribute__((unused)) static void compute_us(double length) {
    double end = now_us() + length;
    while (now_us() < end) continue;
}

static int compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

__attribute__((unused)) static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static void begin(int *argc, char ***argv) {
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

/* The receiver posts, lets the sender go, computes, and waits; returns its time from the posting to the
   end of the wait. The sender's data so always comes after the receive (scenario 3 of PEF). */
__attribute__((unused)) static double late_message(int length, double computation) {
    MPI_Request request;
    double start = now_us();
    if (rank == 0) {
        MPI_Irecv(buffer, length, MPI_BYTE, 1, 0, pair, &request);
        MPI_Send(NULL, 0, MPI_BYTE, 1, 1, pair);
        compute_us(computation);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, pair, MPI_STATUS_IGNORE);
        MPI_Isend(buffer, length, MPI_BYTE, 0, 0, pair, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return now_us() - start;
}

/* Median of `rounds` late messages; both ranks get it. */
__attribute__((unused)) static double late_messages(int length, double computation, int rounds) {
    double times[ROUNDS_MAX], middle;
    for (int round = 0; round < rounds; round++) {
        MPI_Barrier(pair);
        times[round] = late_message(length, computation);
    }
    middle = median(times, rounds);
    MPI_Bcast(&middle, 1, MPI_DOUBLE, 0, pair);
    return middle;
}
#endif
