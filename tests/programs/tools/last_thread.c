// The first thread of each rank leaves by pthread_exit; another one goes on with MPI, ends it and returns, so that the
// process ends with its last thread. With an argument rank 1 has no other thread; with two the other thread waits for a
// file of that name before.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *go_on(void *argument) {
    while (argument != NULL && access(argument, F_OK) != 0) usleep(10000);
    usleep(200000);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    usleep(200000);
    puts("the last thread returns");
    return argument;
}

int main(int argc, char **argv) {
    int provided, rank;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pthread_t thread;
    if (argc < 2 || rank != 1) pthread_create(&thread, NULL, go_on, argc > 2 ? argv[2] : NULL);
    pthread_exit(NULL);
}
