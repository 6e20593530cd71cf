/* The least that a message between two cores can cost: one cache line that goes back and forth
 * between two pinned threads. Prints half a round trip as `latency 8 B MICROSECONDS`, the least of
 * some batches: 25, or as many as the argument says. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
enum { TURNS = 200000 };
static unsigned batches = 25;
static _Alignas(128) atomic_uint ping;
static _Alignas(128) atomic_uint pong;

static void pin(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void *answer(void *unused) {
    (void)unused;
    pin(1);
    for (unsigned i = 1; i <= TURNS * batches; i++) {
        while (atomic_load_explicit(&ping, memory_order_acquire) != i) continue;
        atomic_store_explicit(&pong, i, memory_order_release);
    }
    return NULL;
}

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

int main(int argc, char **argv) {
    pthread_t other;
    double best = 1e9;
    if (argc > 1) batches = (unsigned)atoi(argv[1]);
    pin(0);
    if (pthread_create(&other, NULL, answer, NULL) != 0) return 1;
    for (unsigned batch = 0; batch < batches; batch++) {
        double begin = now_us();
        for (unsigned i = 1; i <= TURNS; i++) {
            atomic_store_explicit(&ping, batch * TURNS + i, memory_order_release);
            while (atomic_load_explicit(&pong, memory_order_acquire) != batch * TURNS + i) continue;
        }
        double each = (now_us() - begin) / TURNS / 2;
        if (each < best) best = each;
    }
    pthread_join(other, NULL);
    printf("latency 8 B %.4f\n", best);
    return 0;
}
