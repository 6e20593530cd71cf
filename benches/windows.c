/* One-sided communication. Prints a line "name value" for each measurement: microseconds, GB/s for
 * names that begin with "rate", percent for those with "hidden".
 *   windows pair     rank 0 works on the memory of rank 1, which waits in a barrier windows hidden
 *   two operations of 16 MB while their target sleeps for 200 ms (Daps, figure 4 a to c); other
 *   ranks idle
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REPEATS = 5, LONG = 16 << 20, SLEEP_MS = 200 };
static int rank, size, target;
static double *memory, *buffer;
static MPI_Win win;

static double now_us(void) { return MPI_Wtime() * 1e6; }

static int compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}
static double median(double *values) {
    qsort(values, REPEATS, sizeof *values, compare);
    return values[REPEATS / 2];
}

static void put(int bytes) { MPI_Put(buffer, bytes, MPI_BYTE, target, 0, bytes, MPI_BYTE, win); }
static void get(int bytes) { MPI_Get(buffer, bytes, MPI_BYTE, target, 0, bytes, MPI_BYTE, win); }
static void accumulate(int bytes) {
    int count = bytes / (int)sizeof(double);
    MPI_Accumulate(buffer, count, MPI_DOUBLE, target, 0, count, MPI_DOUBLE, MPI_SUM, win);
}
static void fetch_and_op(int bytes) {
    static long one = 1, before;
    (void)bytes;
    MPI_Fetch_and_op(&one, &before, MPI_LONG, target, 0, MPI_SUM, win);
}

/* Microseconds per operation that is complete at its target, and per operation of a stream with one flush at its end.
   */
static void measure(const char *name, void (*operation)(int), int bytes, int count) {
    double alone[REPEATS], streamed[REPEATS];
    for (int repeat = -1; repeat < REPEATS; repeat++) {
        double start = now_us();
        for (int i = 0; i < count; i++) {
            operation(bytes);
            MPI_Win_flush(target, win);
        }
        double middle = now_us();
        for (int i = 0; i < count; i++) operation(bytes);
        MPI_Win_flush(target, win);
        if (repeat < 0) continue;
        alone[repeat] = (middle - start) / count;
        streamed[repeat] = (now_us() - middle) / count;
    }
    if (bytes < 1 << 20) printf("%s and flush %d B %.4f\n", name, bytes, median(alone));
    if (bytes < 1 << 10) printf("%s %d B, many %.4f\n", name, bytes, median(streamed));
    else printf("rate of %s %d KB %.3f\n", name, bytes >> 10, bytes / median(streamed) / 1000);
}

static void locks(const char *name, int kind, int count) {
    double times[REPEATS];
    for (int repeat = -1; repeat < REPEATS; repeat++) {
        double start = now_us();
        for (int i = 0; i < count; i++) {
            MPI_Win_lock(kind, target, 0, win);
            put(8);
            MPI_Win_unlock(target, win);
        }
        if (repeat >= 0) times[repeat] = (now_us() - start) / count;
    }
    printf("%s %.4f\n", name, median(times));
}

static void pair(void) {
    if (rank == 0) {
        MPI_Win_lock_all(0, win);
        measure("put", put, 8, 5000);
        measure("get", get, 8, 5000);
        measure("put", put, 64 << 10, 200);
        measure("get", get, 64 << 10, 200);
        measure("put", put, 1 << 20, 20);
        measure("get", get, 1 << 20, 20);
        measure("accumulate", accumulate, 8, 5000);
        measure("accumulate", accumulate, 64 << 10, 50);
        measure("fetch_and_op", fetch_and_op, 8, 5000);
        MPI_Win_unlock_all(win);
        locks("lock-put-unlock, exclusive", MPI_LOCK_EXCLUSIVE, 500);
        locks("lock-put-unlock, shared", MPI_LOCK_SHARED, 500);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The origin's time until all are through a barrier, in milliseconds. */
static double two_long(void (*operation)(int), int sleep_ms) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_us();
    if (rank == 0) {
        MPI_Win_lock_all(0, win);
        for (int i = 0; i < 2; i++) operation(LONG);
        MPI_Win_flush(target, win);
        MPI_Win_unlock_all(win);
    } else if (rank == target) {
        struct timespec time = {.tv_nsec = sleep_ms * 1000000L};
        nanosleep(&time, NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return (now_us() - start) / 1000;
}

static void nothing(int bytes) { (void)bytes; }

/* What the operations take, and how much of what can be hidden behind the sleep is. */
static void hidden(const char *name, void (*operation)(int)) {
    double alone[REPEATS], asleep[REPEATS], both[REPEATS];
    two_long(operation, 0);
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        alone[repeat] = two_long(operation, 0);
        asleep[repeat] = two_long(nothing, SLEEP_MS);
        both[repeat] = two_long(operation, SLEEP_MS);
    }
    double time = median(alone), saved = time + median(asleep) - median(both);
    if (rank != 0) return;
    printf("%s 2 x 16 MB alone, ms %.2f\n", name, time);
    printf("%s while the target sleeps, ms %.2f\n", name, median(both));
    printf("hidden part of %s, %% %.1f\n", name, 100 * saved / (time < SLEEP_MS ? time : SLEEP_MS));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    target = size / 2;
    buffer = malloc(LONG);
    memset(buffer, 0, LONG); /* of pages of its own: those of calloc are all the same one until they are written */
    MPI_Win_allocate(LONG, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 0, LONG);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 1 && strcmp(argv[1], "hidden") == 0) {
        hidden("get", get);
        hidden("put", put);
        hidden("accumulate", accumulate);
    } else {
        pair();
    }
    MPI_Win_free(&win);
    free(buffer);
    MPI_Finalize();
    return 0;
}
