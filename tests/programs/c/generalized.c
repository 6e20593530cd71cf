// Generalized requests: which function's error a call returns, and requests that are freed before they are complete,
// also by one thread while another one completes them.
//# ranks: 1
//# abi: mpich, mpi5, openmpi
//# nodes: no
#include "check.h"
#include <pthread.h>
enum { MANY = 100, ROUNDS = 2000 };

struct operation {
    int queried, freed, query_error, free_error;
};

static int query(void *state, MPI_Status *status) {
    struct operation *operation = state;
    operation->queried++;
    MPI_Status_set_elements(status, MPI_BYTE, 12);
    MPI_Status_set_cancelled(status, 0);
    return operation->query_error;
}

static int release(void *state) {
    struct operation *operation = state;
    operation->freed++;
    return operation->free_error;
}

static int cancel(void *state, int complete) {
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

static MPI_Request begin(struct operation *operation) {
    MPI_Request request;
    CHECK_EQ(MPI_Grequest_start(query, release, cancel, operation, &request), MPI_SUCCESS);
    return request;
}

static int waited(int query_error, int free_error) {
    struct operation operation = {0, 0, query_error, free_error};
    MPI_Status status;
    MPI_Request request = begin(&operation);
    MPI_Grequest_complete(request);
    int code = MPI_Wait(&request, &status), bytes = 0;
    CHECK(request == MPI_REQUEST_NULL);
    CHECK(operation.queried > 0);
    CHECK_EQ(operation.freed, 1);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    CHECK_EQ(bytes, 12);
    return code;
}

static void errors(int one, int other) {
    CHECK_EQ(waited(MPI_SUCCESS, MPI_SUCCESS), MPI_SUCCESS);
    CHECK_EQ(waited(one, MPI_SUCCESS), one);
    CHECK_EQ(waited(MPI_SUCCESS, other), other);
    CHECK_EQ(waited(one, other), other);
    struct operation operations[3] = {{0, 0, one, other}, {0, 0, MPI_SUCCESS, MPI_SUCCESS}, {0, 0, one, MPI_SUCCESS}};
    MPI_Request requests[3];
    MPI_Status statuses[3];
    for (int i = 0; i < 3; i++) {
        requests[i] = begin(&operations[i]);
        MPI_Grequest_complete(requests[i]);
    }
    CHECK_EQ(class_of(MPI_Waitall(3, requests, statuses)), MPI_ERR_IN_STATUS);
    CHECK_EQ(statuses[0].MPI_ERROR, other);
    CHECK_EQ(statuses[1].MPI_ERROR, MPI_SUCCESS);
    CHECK_EQ(statuses[2].MPI_ERROR, one);
}

static void freed_before(int other) {
    static struct operation operations[MANY], later[MANY];
    MPI_Request requests[MANY], copies[MANY], after[MANY];
    for (int i = 0; i < MANY; i++) {
        operations[i].free_error = i % 2 ? other : MPI_SUCCESS;
        requests[i] = copies[i] = begin(&operations[i]);
        CHECK_EQ(MPI_Request_free(&requests[i]), MPI_SUCCESS);
        CHECK(requests[i] == MPI_REQUEST_NULL);
        CHECK_EQ(operations[i].freed, 0);
    }
    // No request that is made meanwhile is one of those.
    for (int i = 0; i < MANY; i++) after[i] = begin(&later[i]);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(MPI_Grequest_complete(copies[i]), i % 2 ? other : MPI_SUCCESS);
        CHECK_EQ(operations[i].freed, 1);
        CHECK_EQ(operations[i].queried, 0);
        CHECK_EQ(later[i].freed, 0);
    }
    for (int i = 0; i < MANY; i++) {
        MPI_Grequest_complete(after[i]);
        CHECK_EQ(MPI_Request_free(&after[i]), MPI_SUCCESS);
        CHECK_EQ(later[i].freed, 1);
        CHECK_EQ(later[i].queried, 0);
    }
}

static MPI_Request shared;
static pthread_barrier_t both;

static void *complete(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&both);
        MPI_Request request = shared;
        pthread_barrier_wait(&both);
        CHECK_EQ(MPI_Grequest_complete(request), MPI_SUCCESS);
        pthread_barrier_wait(&both);
    }
    return unused;
}

static void by_two_threads(void) {
    pthread_t thread;
    pthread_barrier_init(&both, NULL, 2);
    CHECK_EQ(pthread_create(&thread, NULL, complete, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct operation operation = {0};
        shared = begin(&operation);
        pthread_barrier_wait(&both);
        pthread_barrier_wait(&both);
        CHECK_EQ(MPI_Request_free(&shared), MPI_SUCCESS);
        pthread_barrier_wait(&both);
        CHECK_EQ(operation.freed, 1);
    }
    pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    int provided, class, one, other;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &one);
    MPI_Add_error_code(class, &other);
    errors(one, other);
    freed_before(other);
    by_two_threads();
    return finish();
}
