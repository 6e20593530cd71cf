// A program whose timeline is known, for tests/runner/trace.rs. Its argument is what it does:
//   messages  each rank sends its right neighbour one message of each length, by MPI_Send, with tag 7
//   short     the same with short messages only
//   steal     rank 1 leaves a long receive behind and is not in MPI until its message is there: another rank moved it
//   many      1000 messages from rank 0 to rank 1
//   threads   two threads of each rank talk to the neighbour's, with tags 1 and 2
//   kill      rank 1 is killed within MPI_Comm_free; abort: it calls MPI_Abort there; stay: everybody waits for ever
#include "../c/check.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>

static const int LENGTHS[] = {8, 4096, 100000, 1 << 20};

static void messages(int kinds) {
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    char *in[4], *out = calloc(1, LENGTHS[3]);
    MPI_Request requests[4];
    for (int i = 0; i < kinds; i++) {
        in[i] = malloc(LENGTHS[i]);
        MPI_Irecv(in[i], LENGTHS[i], MPI_CHAR, left, 7, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < kinds; i++) MPI_Send(out, LENGTHS[i], MPI_CHAR, right, 7, MPI_COMM_WORLD);
    MPI_Waitall(kinds, requests, MPI_STATUSES_IGNORE);
}

static void steal(void) {
    enum { LONG = 4 << 20 };
    char *buffer = calloc(1, LONG);
    MPI_Request request;
    if (rank == 1) {
        MPI_Irecv(buffer, LONG, MPI_CHAR, 0, 7, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_CHAR, 0, 8, MPI_COMM_WORLD);
        for (int at = 0; at < LONG; at += 4096)
            while (!*(volatile char *)&buffer[at]) sched_yield();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 0) {
        memset(buffer, 1, LONG);
        MPI_Recv(NULL, 0, MPI_CHAR, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buffer, LONG, MPI_CHAR, 1, 7, MPI_COMM_WORLD);
    }
}

static void many(void) {
    int number = 5;
    for (int i = 0; i < 1000; i++) {
        if (rank == 0) MPI_Send(&number, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
        if (rank == 1) MPI_Recv(&number, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void *talk(void *tag) {
    int mine = rank, other, number = (int)(size_t)tag;
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int i = 0; i < 20; i++)
        MPI_Sendrecv(&mine, 1, MPI_INT, right, number, &other, 1, MPI_INT, left, number, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    return NULL;
}

static void threads(void) {
    pthread_t second;
    CHECK(pthread_create(&second, NULL, talk, (void *)2) == 0);
    talk((void *)1);
    pthread_join(second, NULL);
}

static const char *how;

static int end(MPI_Comm comm, int key, void *value, void *state) {
    (void)comm, (void)key, (void)value, (void)state;
    if (rank == 1 && !strcmp(how, "kill")) raise(SIGKILL);
    if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 3);
    return MPI_SUCCESS;
}

static void end_within_a_call(void) {
    MPI_Comm comm;
    int key;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end, &key, NULL);
    MPI_Comm_set_attr(comm, key, &key);
    messages(2);
    MPI_Comm_free(&comm);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int level;
    how = argc > 1 ? argv[1] : "messages";
    MPI_Init_thread(&argc, &argv, !strcmp(how, "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!strcmp(how, "messages")) messages(4);
    if (!strcmp(how, "short")) messages(2);
    if (!strcmp(how, "steal")) steal();
    if (!strcmp(how, "many")) many();
    if (!strcmp(how, "threads")) threads();
    if (!strcmp(how, "kill") || !strcmp(how, "abort")) end_within_a_call();
    if (!strcmp(how, "stay")) MPI_Recv(&level, 1, MPI_INT, rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    if (rank == 0) printf("passed\n");
    return 0;
}
