// One thread asks for the statuses of persistent requests while another starts and completes them.
//# ranks: 1 2 3
//# libs: -lpthread
//# timeout: 60
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
enum { ROUNDS = 600, LONG = 2000 };
static MPI_Request requests[4];
static atomic_int over;

/* An inactive request has an empty status; one that is complete has the message's, until somebody completes it. */
static void *ask(void *asked) {
    while (!atomic_load(&over)) {
        for (int i = 0; i < 4; i++) {
            MPI_Status status;
            int flag = -1;
            MPI_Request_get_status(requests[i], &flag, &status);
            CHECK(flag == 0 || flag == 1);
            CHECK(!flag || i > 1 || status.MPI_TAG == i || status.MPI_TAG == MPI_ANY_TAG);
            atomic_fetch_add((atomic_long *)asked, 1);
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    atomic_long asked = 0;
    static int in[2][LONG], out[2][LONG];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    for (int i = 0; i < 2; i++) {
        int count = i ? LONG : 1;
        MPI_Recv_init(in[i], count, MPI_INT, left, i, MPI_COMM_WORLD, &requests[i]);
        MPI_Send_init(out[i], count, MPI_INT, right, i, MPI_COMM_WORLD, &requests[2 + i]);
    }
    pthread_t other;
    CHECK_EQ(pthread_create(&other, NULL, ask, &asked), 0);
    while (atomic_load(&asked) == 0) sched_yield();
    for (int round = 0; round < ROUNDS; round++) {
        out[0][0] = out[1][LONG - 1] = round * size + rank;
        MPI_Startall(4, requests);
        if (round % 2) MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        else for (int i = 0, flag = 0; i < 4; flag = 0, i++)
            while (!flag) MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
        CHECK_EQ(in[0][0], round * size + left);
        CHECK_EQ(in[1][LONG - 1], round * size + left);
    }
    atomic_store(&over, 1);
    CHECK_EQ(pthread_join(other, NULL), 0);
    for (int i = 0; i < 4; i++) MPI_Request_free(&requests[i]);
    MPI_Finalize();
    return 0;
}
