// For allocators: threads that allocate and free while messages are exchanged in memory that is allocated and freed.
// Prints the size of its world and the sum of all ranks plus one.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, BLOCKS = 200, TURNS = 100000, ROUNDS = 300 };

static void *churn(void *argument) {
    unsigned drawn = *(unsigned *)argument;
    char *blocks[BLOCKS] = {0};
    for (int turn = 0; turn < TURNS; turn++) {
        drawn = drawn * 1103515245 + 12345;
        int index = (drawn >> 8) % BLOCKS, length = 1 + (drawn >> 16) % 5000;
        free(blocks[index]);
        blocks[index] = malloc(length);
        memset(blocks[index], length, length);
    }
    for (int index = 0; index < BLOCKS; index++)
        free(blocks[index]);
    return NULL;
}

static void exchange(int rank, int size, int round) {
    int to = (rank + 1) % size, from = (rank + size - 1) % size, length = 1 << round % 20;
    char *sent = malloc(length), *received = malloc(length);
    memset(sent, rank + round, length);
    MPI_Sendrecv(sent, length, MPI_CHAR, to, 1, received, length, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (received[0] != (char)(from + round) || received[length - 1] != received[0]) {
        printf("rank %d: wrong bytes in a message of %d\n", rank, length);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    free(sent);
    free(received);
}

int main(void) {
    int rank, size, one, sum = 0;
    unsigned seeds[THREADS];
    pthread_t threads[THREADS];
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int thread = 0; thread < THREADS; thread++) {
        seeds[thread] = rank * THREADS + thread;
        pthread_create(&threads[thread], NULL, churn, &seeds[thread]);
    }
    for (int round = 0; round < ROUNDS; round++)
        exchange(rank, size, round);
    for (int thread = 0; thread < THREADS; thread++)
        pthread_join(threads[thread], NULL);
    one = rank + 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("size %d sum %d\n", size, sum);
    fflush(stdout);
    return MPI_Finalize();
}
