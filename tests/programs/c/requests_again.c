// A request that is over serves the next receive. What was left of the one before must not show: its outcome, the
// communicator whose error handler hears, its handle, or that it was cancelled, too short or of another kind.
//# ranks: 2
//# progress: all
#include "check.h"

// More at a time than are kept.
enum { ROUNDS = 40, MANY = 150 };

static int heard;
static void on_error(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    heard++;
}

static MPI_Request post(int *to, int tag, MPI_Comm comm) {
    MPI_Request request;
    CHECK_EQ(MPI_Irecv(to, 1, MPI_INT, 1 - rank, tag, comm, &request), MPI_SUCCESS);
    return request;
}

static void send(int value, int tag, MPI_Comm comm) {
    CHECK_EQ(MPI_Send(&value, 1, MPI_INT, 1 - rank, tag, comm), MPI_SUCCESS);
}

// Ends a receive in one of the ways that there are, and checks what it says.
static void end(MPI_Request *request, int way, int tag) {
    MPI_Status status = {.MPI_TAG = -7, .MPI_SOURCE = -7, .MPI_ERROR = -7};
    int flag = 0, index, count;
    MPI_Request old = *request;
    switch (way % 6) {
    case 0: MPI_Wait(request, &status); break;
    case 1:
        while (!flag) MPI_Test(request, &flag, &status);
        break;
    case 2: MPI_Waitall(1, request, &status); break;
    case 3: MPI_Waitany(1, request, &index, &status); break;
    case 4: MPI_Waitsome(1, request, &count, &index, &status); break;
    default:
        while (!flag) MPI_Request_get_status(*request, &flag, &status);
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
    CHECK(*request == MPI_REQUEST_NULL);
    CHECK_EQ(status.MPI_TAG, tag);
    CHECK_EQ(status.MPI_SOURCE, 1 - rank);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQ(count, 1);
    // The handle that was copied stands for nothing.
    CHECK_EQ(class_of(MPI_Wait(&old, MPI_STATUS_IGNORE)), MPI_ERR_REQUEST);
    CHECK_EQ(class_of(MPI_Test(&old, &flag, MPI_STATUS_IGNORE)), MPI_ERR_REQUEST);
    CHECK_EQ(class_of(MPI_Cancel(&old)), MPI_ERR_REQUEST);
    CHECK_EQ(class_of(MPI_Request_free(&old)), MPI_ERR_REQUEST);
}

// Messages that come before and after their receive, from the ring and from the queue of those that nobody wanted.
static void one_by_one(MPI_Comm comm) {
    for (int round = 0; round < ROUNDS; round++) {
        int got = -1, other = -1;
        MPI_Request request;
        if (round % 3 == 0) {
            request = post(&got, round, comm);
            send(round, round, comm);
        } else {
            send(round, round, comm);
            if (round % 3 == 1) {
                send(-round, 1000, comm);
                CHECK_EQ(MPI_Recv(&other, 1, MPI_INT, 1 - rank, 1000, comm, MPI_STATUS_IGNORE), MPI_SUCCESS);
                CHECK_EQ(other, -round);
            }
            request = post(&got, round, comm);
        }
        end(&request, round, round);
        CHECK_EQ(got, round);
    }
}

// Many at once, in another order than they were posted.
static void many(MPI_Comm comm) {
    static int got[MANY];
    MPI_Request requests[MANY];
    MPI_Status statuses[MANY];
    for (int round = 0; round < 4; round++) {
        for (int at = 0; at < MANY; at++) requests[at] = post(&got[at], at, comm);
        for (int at = MANY - 1; at >= 0; at--) send(at * 3 + round, at, comm);
        if (round % 2) MPI_Waitall(MANY, requests, statuses);
        else
            for (int at = 0; at < MANY; at++) MPI_Wait(&requests[(at * 7) % MANY], &statuses[(at * 7) % MANY]);
        for (int at = 0; at < MANY; at++) {
            CHECK_EQ(got[at], at * 3 + round);
            CHECK_EQ(statuses[at].MPI_TAG, at);
            CHECK(requests[at] == MPI_REQUEST_NULL);
        }
    }
}

// What does not succeed leaves nothing for the next one, and its own communicator hears of it.
static void failures(MPI_Comm comm) {
    int got, long_one[2] = {5, 6}, cancelled;
    MPI_Status status;
    for (int round = 0; round < ROUNDS; round++) {
        // Nobody sends it.
        MPI_Request request = post(&got, 99, comm);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(cancelled);
        request = post(&got, 1, round % 2 ? comm : MPI_COMM_WORLD);
        MPI_Send(long_one, 2, MPI_INT, 1 - rank, 1, round % 2 ? comm : MPI_COMM_WORLD);
        int before = heard;
        CHECK_EQ(class_of(MPI_Wait(&request, &status)), MPI_ERR_TRUNCATE);
        CHECK_EQ(heard, before + round % 2);
        request = post(&got, 2, comm);
        send(round, 2, comm);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(!cancelled);
        CHECK_EQ(got, round);
    }
}

// Receives of other kinds in between: wildcards, a derived type, no process, one that is freed.
static void kinds(MPI_Comm comm) {
    int got[3] = {-1, -1, -1};
    MPI_Status status;
    MPI_Datatype two;
    MPI_Type_vector(2, 1, 2, MPI_INT, &two);
    MPI_Type_commit(&two);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[3];
        MPI_Irecv(&got[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[0]);
        send(round, 3, comm);
        MPI_Wait(&requests[0], &status);
        CHECK_EQ(got[1], round);
        CHECK_EQ(status.MPI_TAG, 3);
        MPI_Irecv(got, 1, two, 1 - rank, 4, comm, &requests[0]);
        MPI_Irecv(&got[1], 1, MPI_INT, MPI_PROC_NULL, 4, comm, &requests[1]);
        requests[2] = post(&got[1], 5, comm);
        MPI_Request_free(&requests[2]);
        int pair[2] = {round, -round};
        send(7, 5, comm);
        MPI_Send(pair, 2, MPI_INT, 1 - rank, 4, comm);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(got[0] == round && got[2] == -round);
        requests[2] = post(&got[1], 6, comm);
        send(round, 6, comm);
        MPI_Wait(&requests[2], &status);
        CHECK_EQ(got[1], round);
    }
    MPI_Type_free(&two);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    one_by_one(comm);
    one_by_one(MPI_COMM_WORLD);
    many(comm);
    failures(comm);
    kinds(comm);
    one_by_one(comm);
    MPI_Comm_free(&comm);
    return finish();
}
