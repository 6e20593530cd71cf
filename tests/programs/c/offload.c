// Long posts that dedicated workers do for a rank, between short ones that it does itself: messages
// of one sender keep their order whatever their lengths, wildcards included, and probes, cancels,
// frees, tests, persistent requests and threads see every post that was made before. Under
// COHORT_WAIT=spin the ghost polls, so posts are left to it.
//# ranks: 2 3
//# abi: mpi5
//# progress: ghost, steal, thread
//# wait: auto spin
//# timeout: 60
#include "check.h"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
enum { LONG = 100000, MESSAGES = 24, ROUNDS = 20, THREADS = 2 };
static unsigned char outgoing[MESSAGES][LONG], incoming[MESSAGES][LONG];

static int length_of(int number, int round) { return (number * 7 + round) % 3 == 0 ? 40 + number : LONG - number; }

static unsigned char pattern(int sender, int number, int i) {
    return (unsigned char)(i * 3 + number * 17 + sender * 5);
}

static unsigned long long offloaded(void) {
    int provided, index, elements;
    unsigned long long value = 0;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    CHECK_EQ(MPI_T_pvar_get_index("cohort_offloaded", MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &elements);
    CHECK_EQ(MPI_T_pvar_read(session, handle, &value), MPI_SUCCESS);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return value;
}

// All messages of a round have one tag, so their order alone says which is which.
static void in_order(int round) {
    MPI_Request requests[2 * MESSAGES];
    MPI_Status statuses[2 * MESSAGES];
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    for (int number = 0; number < MESSAGES; number++) {
        int length = length_of(number, round), source = number % 4 == 0 ? last : MPI_ANY_SOURCE;
        for (int i = 0; i < length; i++) outgoing[number][i] = pattern(rank, number, i);
        MPI_Irecv(incoming[number], LONG, MPI_BYTE, source, number % 3 ? MPI_ANY_TAG : round, MPI_COMM_WORLD,
                  &requests[2 * number]);
        MPI_Isend(outgoing[number], length, MPI_BYTE, next, round, MPI_COMM_WORLD, &requests[2 * number + 1]);
    }
    if (round % 2) usleep(500);
    MPI_Waitall(2 * MESSAGES, requests, statuses);
    for (int number = 0; number < MESSAGES; number++) {
        int length = length_of(number, round), count;
        MPI_Get_count(&statuses[2 * number], MPI_BYTE, &count);
        CHECK_EQ(count, length);
        for (int i = 0; i < length; i++) CHECK_EQ(incoming[number][i], pattern(last, number, i));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void cancels_and_probes(void) {
    MPI_Request unwanted, wanted, freed;
    MPI_Status status;
    int flag, found, next = (rank + 1) % size, last = (rank + size - 1) % size;
    MPI_Irecv(incoming[0], LONG, MPI_BYTE, last, 7, MPI_COMM_WORLD, &unwanted);
    MPI_Cancel(&unwanted);
    MPI_Wait(&unwanted, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag);
    MPI_Barrier(MPI_COMM_WORLD);
    // The first message belongs to the receive, the second to the probe.
    MPI_Irecv(incoming[1], LONG, MPI_BYTE, last, MPI_ANY_TAG, MPI_COMM_WORLD, &wanted);
    MPI_Barrier(MPI_COMM_WORLD);
    memset(outgoing[0], rank, LONG);
    MPI_Isend(outgoing[0], LONG, MPI_BYTE, next, 7, MPI_COMM_WORLD, &freed);
    MPI_Request_free(&freed);
    MPI_Send(&rank, 1, MPI_INT, next, 7, MPI_COMM_WORLD);
    MPI_Probe(last, 7, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &found);
    CHECK_EQ(found, (int)sizeof found);
    MPI_Recv(&found, 1, MPI_INT, last, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(found, last);
    do MPI_Test(&wanted, &flag, &status);
    while (!flag);
    for (int i = 0; i < LONG; i++) CHECK_EQ(incoming[1][i], (unsigned char)last);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void persistent(void) {
    MPI_Request requests[2];
    MPI_Datatype strided;
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    MPI_Type_vector(LONG / 4, 2, 4, MPI_BYTE, &strided);
    MPI_Type_commit(&strided);
    MPI_Recv_init(incoming[0], 1, strided, last, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(outgoing[0], LONG / 2, MPI_BYTE, next, 3, MPI_COMM_WORLD, &requests[1]);
    MPI_Type_free(&strided);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < LONG / 2; i++) outgoing[0][i] = pattern(rank, round, i);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < LONG / 2; i++) CHECK_EQ(incoming[0][i / 2 * 4 + i % 2], pattern(last, round, i));
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void *thread(void *argument) {
    int tag = 100 + *(int *)argument, next = (rank + 1) % size, last = (rank + size - 1) % size;
    unsigned char *out = malloc(LONG), *in = malloc(LONG);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[2];
        memset(out, rank + round + tag, LONG);
        MPI_Irecv(in, LONG, MPI_BYTE, last, tag, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, round % 3 ? LONG : 100, MPI_BYTE, next, tag, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < (round % 3 ? LONG : 100); i++) CHECK_EQ(in[i], (unsigned char)(last + round + tag));
    }
    free(out);
    free(in);
    return NULL;
}

int main(int argc, char **argv) {
    int provided, numbers[THREADS];
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < ROUNDS; round++) in_order(round);
    for (int round = 0; round < ROUNDS; round++) cancels_and_probes();
    persistent();
    for (int i = 0; i < THREADS; i++) numbers[i] = i, pthread_create(&threads[i], NULL, thread, &numbers[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    const char *policy = getenv("COHORT_PROGRESS"), *wait = getenv("COHORT_WAIT");
    int is_ghost = policy && strcmp(policy, "ghost") == 0, polls = wait && strcmp(wait, "spin") == 0;
    if (is_ghost && polls) CHECK(offloaded() > 0);
    if (!is_ghost) CHECK_EQ(offloaded(), 0ull);
    return finish();
}
