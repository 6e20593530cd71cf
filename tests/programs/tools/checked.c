// For checkers: short and long messages, and, with an argument, one mistake. Prints the size of its world and the sum
// of all ranks plus one.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG = 1 << 20 };

static int shared;
static void *volatile kept;

static void *add(void *unused) {
    (void)unused;
    shared++; // race
    return NULL;
}

static void race(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, add, NULL);
    shared++;
    pthread_join(thread, NULL);
}

static void overflow(volatile int length) {
    volatile char *block = kept = malloc(length);
    block[length] = 1; // overflow
    free(kept);
}

static void leak(int length) {
    kept = malloc(length); // leak
    kept = NULL;
}

static void exchange(int rank, int size) {
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    char *sent = malloc(LONG), *received = malloc(LONG);
    for (int length = 1; length <= LONG; length *= 16) {
        memset(sent, rank + length % 7, length);
        memset(received, -1, length);
        MPI_Sendrecv(sent, length, MPI_CHAR, to, 1, received, length, MPI_CHAR, from, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        if (received[0] != from + length % 7 || received[length - 1] != received[0]) {
            printf("rank %d: wrong bytes in a message of %d\n", rank, length);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    free(sent);
    free(received);
}

int main(int argc, char **argv) {
    const char *mistake = argc > 1 ? argv[1] : "";
    int rank, size, one, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    exchange(rank, size);
    one = rank + 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("size %d sum %d\n", size, sum);
    fflush(stdout);
    if (!strcmp(mistake, "race"))
        race();
    if (!strcmp(mistake, "overflow"))
        overflow(10);
    if (!strcmp(mistake, "leak"))
        leak(12345);
    MPI_Finalize();
    return 0;
}
