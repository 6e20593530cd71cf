// Partitioned messages: different partitions and types on the two sides, threads that mark
// partitions ready in any order, matching by order, also of what is freed before it is started,
// MPI_PROC_NULL, no partitions at all, and refused arguments.
//# ranks: 1 2 3
//# progress: steal, none
//# libs: -lpthread
#include "check.h"
#include <pthread.h>
enum { PARTITIONS = 8, EACH = 3000, TOTAL = PARTITIONS * EACH, ROUNDS = 5, THREADS = 4 };
static int out[TOTAL], in[2 * TOTAL];
static MPI_Request sending, receiving;

static void *mark(void *thread) {
    for (int i = PARTITIONS - 1 - (int)(long)thread; i >= 0; i -= THREADS) MPI_Pready(i, sending);
    return NULL;
}

static void mark_all(int round) {
    pthread_t threads[THREADS];
    int even[PARTITIONS / 2];
    switch (round % 3) {
    case 0:
        for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, mark, (void *)i);
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        break;
    case 1:
        MPI_Pready_range(PARTITIONS / 2, PARTITIONS - 1, sending);
        MPI_Pready_range(0, PARTITIONS / 2 - 1, sending);
        break;
    default:
        for (int i = 0; i < PARTITIONS / 2; i++) even[i] = 2 * i;
        MPI_Pready_list(PARTITIONS / 2, even, sending);
        for (int i = 1; i < PARTITIONS; i += 2) MPI_Pready(i, sending);
    }
}

/* The receiver has `partitions` partitions of every other int, `block` of them in an element. */
static void exchange(int partitions, int block, int poll) {
    int right = (rank + 1) % size, left = (rank + size - 1) % size, flag;
    MPI_Datatype every_other, elements;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every_other);
    MPI_Type_contiguous(block, every_other, &elements);
    MPI_Type_commit(&elements);
    MPI_Psend_init(out, PARTITIONS, EACH, MPI_INT, right, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &sending);
    MPI_Precv_init(in, partitions, TOTAL / partitions / block, elements, left, 5, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &receiving);
    MPI_Type_free(&every_other);
    MPI_Type_free(&elements);
    MPI_Test(&receiving, &flag, MPI_STATUS_IGNORE);
    CHECK(flag);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Status status;
        int count;
        for (int i = 0; i < TOTAL; i++) out[i] = rank * 1000000 + round * 100000 + i;
        memset(in, -1, sizeof in);
        if ((round + rank) % 2) MPI_Start(&receiving);
        MPI_Start(&sending);
        if ((round + rank) % 2 == 0) MPI_Start(&receiving);
        mark_all(round);
        if (poll)
            for (int i = 0; i < partitions; i++)
                do MPI_Parrived(receiving, i, &flag);
                while (!flag);
        MPI_Wait(&receiving, &status);
        CHECK_EQ(status.MPI_SOURCE, left);
        CHECK_EQ(status.MPI_TAG, 5);
        MPI_Get_count(&status, MPI_INT, &count);
        CHECK_EQ(count, TOTAL);
        for (int i = 0; i < TOTAL; i++) {
            CHECK_EQ(in[2 * i], left * 1000000 + round * 100000 + i);
            CHECK_EQ(in[2 * i + 1], -1);
        }
        MPI_Wait(&sending, MPI_STATUS_IGNORE);
        CHECK(sending != MPI_REQUEST_NULL && receiving != MPI_REQUEST_NULL);
    }
    MPI_Request_free(&sending);
    MPI_Request_free(&receiving);
    CHECK(sending == MPI_REQUEST_NULL);
}

/* Two pairs with one envelope, beside an ordinary message: by order of the calls. */
static void order(void) {
    int values[2] = {10, 20}, got[2] = {0, 0}, plain = 30, taken, right = (rank + 1) % size;
    int left = (rank + size - 1) % size;
    MPI_Request requests[4], ordinary;
    MPI_Isend(&plain, 1, MPI_INT, right, 7, MPI_COMM_WORLD, &ordinary);
    for (int i = 0; i < 2; i++) {
        MPI_Precv_init(&got[i], 1, 1, MPI_INT, left, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2 + i]);
        MPI_Psend_init(&values[i], 1, 1, MPI_INT, right, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
    }
    MPI_Startall(4, requests);
    MPI_Pready(0, requests[1]);
    MPI_Pready(0, requests[0]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    CHECK(got[0] == 10 && got[1] == 20);
    MPI_Recv(&taken, 1, MPI_INT, left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&ordinary, MPI_STATUS_IGNORE);
    for (int i = 0; i < 4; i++) MPI_Request_free(&requests[i]);
}

/* Pairs are freed before they have met: by the receiver first, by the sender first, by both at once. None of their
 * halves meets one of a later pair. */
static void freed(int first) {
    int value, got = -1, right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Request ends[2];
    for (int i = 0; i < 6; i++) {
        for (int half = 0; half < 2; half++) {
            int is_send = first == 2 ? half : half != first;
            if (is_send) MPI_Psend_init(&value, 1, 1, MPI_INT, right, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &ends[half]);
            else MPI_Precv_init(&got, 1, 1, MPI_INT, left, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &ends[half]);
            if (first == 2) continue;
            MPI_Request_free(&ends[half]);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        if (first < 2) continue;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Request_free(&ends[0]);
        MPI_Request_free(&ends[1]);
    }
    MPI_Psend_init(&value, 1, 1, MPI_INT, right, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &ends[0]);
    MPI_Precv_init(&got, 1, 1, MPI_INT, left, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &ends[1]);
    value = 100 * first + rank;
    MPI_Startall(2, ends);
    MPI_Pready(0, ends[0]);
    MPI_Waitall(2, ends, MPI_STATUSES_IGNORE);
    CHECK_EQ(got, 100 * first + left);
    MPI_Request_free(&ends[0]);
    MPI_Request_free(&ends[1]);
}

static void nobody(void) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int flag = 0;
    MPI_Psend_init(out, 2, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Precv_init(in, 2, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    MPI_Startall(2, requests);
    MPI_Pready_range(0, 1, requests[0]);
    MPI_Parrived(requests[1], 1, &flag);
    CHECK(flag);
    MPI_Waitall(2, requests, statuses);
    CHECK_EQ(statuses[1].MPI_SOURCE, MPI_PROC_NULL);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* Each partition can be counted, and all of them cannot. */
static void too_much(void) {
    MPI_Request request;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const MPI_Count most = (MPI_Count)1 << 62;
    int sent = MPI_Psend_init(out, 4, most, MPI_BYTE, rank, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    CHECK_EQ(class_of(sent), MPI_ERR_COUNT);
    int received = MPI_Precv_init(in, 4, most, MPI_BYTE, rank, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    CHECK_EQ(class_of(received), MPI_ERR_COUNT);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* One side has so many partitions, the other as many as it is told, and none of them an element. */
static void none(int sent, int received) {
    int right = (rank + 1) % size, left = (rank + size - 1) % size, flag;
    void *start = sent ? out : NULL;
    MPI_Psend_init(start, sent, sent ? 0 : 5, MPI_INT, right, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &sending);
    MPI_Precv_init(in, received, received ? 0 : 5, MPI_INT, left, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &receiving);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Status status;
        int count;
        MPI_Request *first = round % 2 ? &sending : &receiving;
        MPI_Start(first);
        MPI_Start(first == &sending ? &receiving : &sending);
        if (sent > 0) MPI_Pready_range(0, sent - 1, sending);
        CHECK_EQ(class_of(MPI_Pready(sent, sending)), MPI_ERR_ARG);
        CHECK_EQ(class_of(MPI_Parrived(receiving, received, &flag)), MPI_ERR_ARG);
        MPI_Wait(&sending, MPI_STATUS_IGNORE);
        MPI_Wait(&receiving, &status);
        CHECK_EQ(status.MPI_SOURCE, left);
        MPI_Get_count(&status, MPI_INT, &count);
        CHECK_EQ(count, 0);
    }
    MPI_Request_free(&sending);
    MPI_Request_free(&receiving);
}

static void refused(void) {
    MPI_Request request;
    int flag;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int code = MPI_Psend_init(out, -1, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL, &request);
    CHECK_EQ(class_of(code), MPI_ERR_ARG);
    code = MPI_Precv_init(in, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_SELF, MPI_INFO_NULL, &request);
    CHECK_EQ(class_of(code), MPI_ERR_RANK);
    code = MPI_Precv_init(in, 1, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_SELF, MPI_INFO_NULL, &request);
    CHECK_EQ(class_of(code), MPI_ERR_TAG);
    MPI_Psend_init(out, 2, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL, &sending);
    MPI_Precv_init(in, 2, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL, &receiving);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK_EQ(class_of(MPI_Pready(0, sending)), MPI_ERR_REQUEST);
    MPI_Parrived(receiving, 0, &flag);
    CHECK(flag);
    MPI_Start(&sending);
    MPI_Start(&receiving);
    CHECK_EQ(class_of(MPI_Pready(2, sending)), MPI_ERR_ARG);
    CHECK_EQ(class_of(MPI_Pready(0, receiving)), MPI_ERR_REQUEST);
    CHECK_EQ(class_of(MPI_Start(&sending)), MPI_ERR_REQUEST);
    CHECK_EQ(MPI_Pready(0, sending), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_Pready(0, sending)), MPI_ERR_ARG);
    CHECK_EQ(class_of(MPI_Cancel(&sending)), MPI_ERR_REQUEST);
    CHECK_EQ(MPI_Pready(1, sending), MPI_SUCCESS);
    MPI_Wait(&sending, MPI_STATUS_IGNORE);
    MPI_Wait(&receiving, MPI_STATUS_IGNORE);
    MPI_Request_free(&sending);
    MPI_Request_free(&receiving);
}

int main(int argc, char **argv) {
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    exchange(PARTITIONS, 1, 0);
    exchange(1, 1, 1);
    exchange(3, 1, 1);
    exchange(24, 1, 1);
    /* An element ends in the middle of what the sender calls a partition. */
    exchange(5, 16, 1);
    order();
    for (int first = 0; first < 3; first++) freed(first);
    nobody();
    too_much();
    refused();
    none(0, 0);
    none(0, 3);
    none(2, 0);
    return finish();
}
