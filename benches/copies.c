/* The least that a long message between two cores can cost: two pinned threads copy it together, half each, from the
 * buffer of one to that of the other, and back between two other buffers. Prints half a round trip as
 * `latency N MB MICROSECONDS`, the median over batches. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
enum { TURNS = 40, BATCHES = 25, LARGEST = 4 << 20, CHUNK = 64 << 10 };
static _Alignas(128) atomic_uint copied[2];
static _Alignas(128) atomic_uint next[2 * TURNS * BATCHES];
static char *from[2], *to[2];
static size_t bytes;

static void pin(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* Copies what the other thread leaves, one chunk after the other, and waits for it. */
static void copy(int me, unsigned turn) {
    for (;;) {
        size_t at = (size_t)atomic_fetch_add(&next[turn], 1) * CHUNK;
        if (at >= bytes) break;
        memcpy(to[turn & 1] + at, from[turn & 1] + at, CHUNK);
    }
    atomic_store(&copied[me], turn + 1);
    while (atomic_load(&copied[1 - me]) <= turn) continue;
}

static void *other(void *unused) {
    (void)unused;
    pin(1);
    for (unsigned turn = 0; turn < 2 * TURNS * BATCHES; turn++) copy(1, turn);
    return NULL;
}

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int measure(void) {
    pthread_t thread;
    double each[BATCHES];
    memset((void *)next, 0, sizeof next);
    memset((void *)copied, 0, sizeof copied);
    if (pthread_create(&thread, NULL, other, NULL) != 0) return 1;
    unsigned turn = 0;
    for (unsigned batch = 0; batch < BATCHES; batch++) {
        double begin = now_us();
        for (unsigned i = 0; i < 2 * TURNS; i++) copy(0, turn++);
        each[batch] = (now_us() - begin) / TURNS / 2;
    }
    pthread_join(thread, NULL);
    qsort(each, BATCHES, sizeof *each, ascending);
    printf("latency %zu MB %.4f\n", bytes >> 20, each[BATCHES / 2]);
    return 0;
}

int main(void) {
    pin(0);
    for (int i = 0; i < 2; i++) {
        from[i] = memset(malloc(LARGEST), i + 1, LARGEST);
        to[i] = memset(malloc(LARGEST), 0, LARGEST);
    }
    int failed = 0;
    for (bytes = 1 << 20; bytes <= LARGEST; bytes *= 4) failed |= measure();
    return failed;
}
