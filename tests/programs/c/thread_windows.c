// Eight threads of every rank each wait for windows of receives: more requests than the runtime keeps for the next
// ones. Those of every other thread end one by one.
//# ranks: 1 2 3
//# progress: steal, none
//# libs: -lpthread
//# timeout: 60
#include "check.h"
#include <pthread.h>
enum { THREADS = 8, WINDOW = 100, ROUNDS = 40 };
static MPI_Comm comms[THREADS];

/* A value that no other thread, round or place has. */
static int value(int from, int thread, int round, int i) {
    return ((from * THREADS + thread) * ROUNDS + round) * WINDOW + i;
}

static void end(MPI_Request *requests, MPI_Status *statuses, int thread) {
    if (thread % 2 == 0) {
        CHECK_EQ(MPI_Waitall(WINDOW, requests, statuses), MPI_SUCCESS);
        return;
    }
    for (int i = 0; i < WINDOW; i++) {
        int flag = 0;
        if (i % 2) CHECK_EQ(MPI_Wait(&requests[i], &statuses[i]), MPI_SUCCESS);
        else while (!flag) CHECK_EQ(MPI_Test(&requests[i], &flag, &statuses[i]), MPI_SUCCESS);
    }
}

static void *run(void *argument) {
    int thread = (int)(long)argument, right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int round = 0; round < ROUNDS; round++) {
        int in[WINDOW], out[WINDOW];
        MPI_Request requests[WINDOW], sends[WINDOW];
        MPI_Status statuses[WINDOW];
        for (int i = 0; i < WINDOW; i++) {
            out[i] = value(rank, thread, round, i), in[i] = -1;
            CHECK_EQ(MPI_Irecv(&in[i], 1, MPI_INT, left, i, comms[thread], &requests[i]), MPI_SUCCESS);
        }
        for (int i = 0; i < WINDOW; i++)
            CHECK_EQ(MPI_Isend(&out[i], 1, MPI_INT, right, i, comms[thread], &sends[i]), MPI_SUCCESS);
        end(requests, statuses, thread);
        for (int i = 0; i < WINDOW; i++) {
            CHECK_EQ(in[i], value(left, thread, round, i));
            CHECK_EQ(statuses[i].MPI_TAG, i);
            CHECK_EQ(statuses[i].MPI_SOURCE, left);
            CHECK(requests[i] == MPI_REQUEST_NULL);
        }
        CHECK_EQ(MPI_Waitall(WINDOW, sends, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    pthread_t threads[THREADS];
    CHECK_EQ(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided), MPI_SUCCESS);
    CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
    CHECK_EQ(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), MPI_SUCCESS);
    CHECK_EQ(MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_SUCCESS);
    CHECK_EQ(MPI_Comm_size(MPI_COMM_WORLD, &size), MPI_SUCCESS);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]), MPI_SUCCESS);
    for (long i = 0; i < THREADS; i++) CHECK_EQ(pthread_create(&threads[i], NULL, run, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(MPI_Comm_free(&comms[i]), MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
