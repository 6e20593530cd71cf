// Accumulates of several threads of a rank are atomic also while the rank has the window to itself, by an exclusive
// lock: that keeps away others, not the rank's own threads.
//# ranks: 2
//# abi: mpich mpi5
//# progress: steal none
//# libs: -lpthread
//# nodes: no
// Between nodes the target's rank does them one after the other, and each result takes a round trip.
#include "check.h"
#include <pthread.h>
enum { THREADS = 2, ROUNDS = 200000 };
static MPI_Win win;
static int target;
static pthread_barrier_t together;

static void *count(void *argument) {
    long one = 1, old, last = -1;
    pthread_barrier_wait(&together);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Fetch_and_op(&one, &old, MPI_LONG, target, 0, MPI_SUM, win);
        MPI_Win_flush(target, win);
        CHECK(old > last);
        last = old;
        MPI_Accumulate(&one, 1, MPI_LONG, target, 1, 1, MPI_LONG, MPI_SUM, win);
    }
    MPI_Win_flush(target, win);
    return argument;
}

int main(int argc, char **argv) {
    int provided;
    long *memory;
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_allocate(2 * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memory[0] = memory[1] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    pthread_barrier_init(&together, NULL, THREADS);
    target = (rank + 1) % size;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, count, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    MPI_Win_unlock(target, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    CHECK_EQ(memory[0], THREADS * ROUNDS);
    CHECK_EQ(memory[1], THREADS * ROUNDS);
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
    return finish();
}
