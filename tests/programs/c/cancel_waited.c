// A thread cancels a send for which another one waits, and which nobody receives: the wait ends (MPI 4.1 3.8.4).
//# ranks: 2
//# progress: steal, none, thread
#include "check.h"
#include <pthread.h>
#include <unistd.h>

static MPI_Request request;

static void *wait_for(void *status) {
    MPI_Wait(&request, status);
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) {
        for (int i = 0; i < 3; i++) {
            int data = 1, cancelled = 0;
            pthread_t thread;
            MPI_Status status;
            MPI_Issend(&data, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
            MPI_Request copy = request;
            CHECK_EQ(pthread_create(&thread, NULL, wait_for, &status), 0);
            usleep(100000);
            MPI_Cancel(&copy);
            CHECK_EQ(pthread_join(thread, NULL), 0);
            MPI_Test_cancelled(&status, &cancelled);
            CHECK(cancelled);
        }
    }
    return finish();
}
