// Rounds of a partitioned message that one thread begins and ends while another marks the partition: the next round
// begins after the mark of this one.
//# ranks: 2
//# progress: steal, none
//# libs: -lpthread
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
enum { ROUNDS = 3000 };
static MPI_Request request;
static atomic_int started;
static int data;

static void *mark(void *unused) {
    for (int round = 1; round <= ROUNDS; round++) {
        while (atomic_load(&started) != round) sched_yield();
        MPI_Pready(0, request);
    }
    return unused;
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    if (rank == 0) {
        pthread_t thread;
        MPI_Psend_init(&data, 1, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        pthread_create(&thread, NULL, mark, NULL);
        for (int round = 1; round <= ROUNDS; round++) {
            data = round;
            MPI_Start(&request);
            atomic_store(&started, round);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        pthread_join(thread, NULL);
    } else {
        MPI_Precv_init(&data, 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        for (int round = 1; round <= ROUNDS; round++) {
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK_EQ(data, round);
        }
    }
    MPI_Request_free(&request);
    return finish();
}
