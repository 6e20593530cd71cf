// MPI_THREAD_MULTIPLE: four threads per rank exchange messages on their own tags and
// communicators at the same time.
//# ranks: 2 4
//# progress: all
//# libs: -lpthread
#include "check.h"
#include <pthread.h>
enum { THREADS = 4, ROUNDS = 300 };
static MPI_Comm comms[THREADS];

static void *exchange(void *argument) {
    int me = (int)(size_t)argument, left = (rank + size - 1) % size, right = (rank + 1) % size;
    for (int round = 0; round < ROUNDS; round++) {
        int out = rank * 1000000 + me * 10000 + round, in = -1, sum;
        MPI_Comm comm = round % 2 ? comms[me] : MPI_COMM_WORLD;
        MPI_Sendrecv(&out, 1, MPI_INT, right, me, &in, 1, MPI_INT, left, me, comm, MPI_STATUS_IGNORE);
        CHECK_EQ(in, left * 1000000 + me * 10000 + round);
        if (round % 50 == 0) {
            MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comms[me]);
            CHECK_EQ(sum, size * (size - 1) / 2);
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided, is_main;
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
    MPI_Is_thread_main(&is_main);
    CHECK(is_main);
    for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, exchange, (void *)(size_t)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) MPI_Comm_free(&comms[i]);
    return finish();
}
