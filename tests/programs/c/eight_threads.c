// Eight threads of every rank send and receive at once, each on a communicator of its own and then
// all on one, with tags, wildcards, probes and nonblocking calls of their own.
//# ranks: 1 2 3
//# progress: steal, none
//# libs: -lpthread
//# timeout: 60
#include "check.h"
#include <pthread.h>
enum { THREADS = 8, ROUNDS = 60, LONGEST = 20000 };
static MPI_Comm comms[THREADS];
static const int lengths[] = {0, 1, 200, 5000, LONGEST};

struct work { int thread; MPI_Comm comm; int *out, *in; };

/* A value that no other thread, round or place has. */
static int value(int from, int thread, int round, int i) {
    return ((from * THREADS + thread) * ROUNDS + round) * 7 + i;
}

static void check(const struct work *w, int round, int count, const MPI_Status *status) {
    int got, left = (rank + size - 1) % size;
    MPI_Get_count(status, MPI_INT, &got);
    CHECK_EQ(got, count);
    CHECK_EQ(status->MPI_SOURCE, left);
    CHECK_EQ(status->MPI_TAG, w->thread);
    for (int i = 0; i < count; i++) CHECK_EQ(w->in[i], value(left, w->thread, round, i));
}

static void *run(void *argument) {
    struct work *w = argument;
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int round = 0; round < ROUNDS; round++) {
        int count = lengths[(round + w->thread) % 5];
        MPI_Request requests[2];
        MPI_Status statuses[2], status;
        MPI_Message message;
        for (int i = 0; i < count; i++) w->out[i] = value(rank, w->thread, round, i);
        switch (round % 3) {
        case 0:
            MPI_Irecv(w->in, LONGEST, MPI_INT, round % 2 ? left : MPI_ANY_SOURCE, w->thread, w->comm, &requests[0]);
            MPI_Isend(w->out, count, MPI_INT, right, w->thread, w->comm, &requests[1]);
            MPI_Waitall(2, requests, statuses);
            check(w, round, count, &statuses[0]);
            break;
        case 1:
            MPI_Sendrecv(w->out, count, MPI_INT, right, w->thread, w->in, LONGEST, MPI_INT, left,
                         w->thread, w->comm, &status);
            check(w, round, count, &status);
            break;
        default:
            MPI_Isend(w->out, count, MPI_INT, right, w->thread, w->comm, &requests[0]);
            MPI_Mprobe(MPI_ANY_SOURCE, w->thread, w->comm, &message, &status);
            MPI_Mrecv(w->in, LONGEST, MPI_INT, &message, &status);
            check(w, round, count, &status);
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        }
    }
    return NULL;
}

static void all(int separate) {
    pthread_t threads[THREADS];
    struct work work[THREADS];
    for (int t = 0; t < THREADS; t++) {
        work[t] = (struct work){t, separate ? comms[t] : MPI_COMM_WORLD,
                                malloc(LONGEST * sizeof(int)), malloc(LONGEST * sizeof(int))};
        pthread_create(&threads[t], NULL, run, &work[t]);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        free(work[t].out);
        free(work[t].in);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    CHECK_EQ(level, MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int t = 0; t < THREADS; t++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
    all(1);
    all(0);
    for (int t = 0; t < THREADS; t++) MPI_Comm_free(&comms[t]);
    return finish();
}
