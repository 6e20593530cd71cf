// A request that is over serves the next receive. What was left of the one before must not show: its outcome, the
// communicator whose error handler hears, its handle, or that it was cancelled, too short or of another kind. The same
// of small collectives and of the starts of persistent messages.
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

// Ends an operation in one of the ways that there are.
static void end_any(MPI_Request *request, int way, MPI_Status *status) {
    int flag = 0, index, count;
    switch (way % 5) {
    case 0: MPI_Wait(request, status); break;
    case 1:
        while (!flag) MPI_Test(request, &flag, status);
        break;
    case 2: MPI_Waitall(1, request, status); break;
    case 3: MPI_Waitany(1, request, &index, status); break;
    default: MPI_Waitsome(1, request, &count, &index, status);
    }
}

static MPI_Request begin_small(int way, int *value, int *sum, MPI_Comm comm) {
    MPI_Request request;
    switch (way % 4) {
    case 0: MPI_Iallreduce(value, sum, 1, MPI_INT, MPI_SUM, comm, &request); break;
    case 1: MPI_Ibcast(sum, 1, MPI_INT, way % 2, comm, &request); break;
    case 2: MPI_Ireduce(value, sum, 1, MPI_INT, MPI_SUM, way / 4 % 2, comm, &request); break;
    default: MPI_Ibarrier(comm, &request);
    }
    return request;
}

// Collectives of a few bytes keep their slots: their handles stand for nothing once they are over.
static void small_collectives(MPI_Comm comm) {
    int value[MANY], sum[MANY], flag;
    MPI_Request requests[MANY];
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Status status = {.MPI_ERROR = -7};
        value[0] = round + rank, sum[0] = rank == 1 ? round : -1;
        MPI_Request request = begin_small(round, value, sum, comm), old = request;
        end_any(&request, round / 4, &status);
        CHECK(request == MPI_REQUEST_NULL);
        CHECK_EQ(class_of(MPI_Wait(&old, MPI_STATUS_IGNORE)), MPI_ERR_REQUEST);
        CHECK_EQ(class_of(MPI_Test(&old, &flag, MPI_STATUS_IGNORE)), MPI_ERR_REQUEST);
        CHECK_EQ(class_of(MPI_Waitall(1, &old, MPI_STATUSES_IGNORE)), MPI_ERR_REQUEST);
        CHECK_EQ(class_of(MPI_Request_free(&old)), MPI_ERR_REQUEST);
        if (round % 4 == 0) CHECK_EQ(sum[0], 2 * round + 1);
        if (round % 4 == 1) CHECK_EQ(sum[0], round);
        if (round % 4 == 2 && rank == round / 4 % 2) CHECK_EQ(sum[0], 2 * round + 1);
        // The slot goes to a receive next, and back.
        int got = -1;
        request = post(&got, 7, comm);
        send(round, 7, comm);
        end(&request, round, 7);
        CHECK_EQ(got, round);
    }
    for (int round = 0; round < 4; round++) {
        for (int at = 0; at < MANY; at++) value[at] = at + rank, sum[at] = rank == 1 ? at : -1;
        for (int at = 0; at < MANY; at++) requests[at] = begin_small(at, &value[at], &sum[at], comm);
        if (round % 2) MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
        else
            for (int at = 0; at < MANY; at++) MPI_Wait(&requests[(at * 7) % MANY], MPI_STATUS_IGNORE);
        for (int at = 0; at < MANY; at++) {
            CHECK(requests[at] == MPI_REQUEST_NULL);
            if (at % 4 == 0) CHECK_EQ(sum[at], 2 * at + 1);
            if (at % 4 == 1) CHECK_EQ(sum[at], at);
        }
    }
}

// Starts of a persistent receive share one record, whatever became of the start before.
static void persistent(MPI_Comm comm) {
    int got = -1, value = -1, flag;
    MPI_Request pair[2];
    CHECK_EQ(MPI_Recv_init(&got, 1, MPI_INT, 1 - rank, 8, comm, &pair[0]), MPI_SUCCESS);
    CHECK_EQ(MPI_Send_init(&value, 1, MPI_INT, 1 - rank, 8, comm, &pair[1]), MPI_SUCCESS);
    for (int round = 0; round < 3 * ROUNDS; round++) {
        MPI_Status statuses[2] = {{.MPI_TAG = -7}, {.MPI_TAG = -7}};
        MPI_Request kept = pair[0];
        value = round;
        // The message comes after the receive, or is there: in the ring or behind another one.
        if (round % 3 == 0) MPI_Startall(2, pair);
        else {
            MPI_Start(&pair[1]);
            if (round % 3 == 1) {
                int other = -1;
                send(-round, 1000, comm);
                CHECK_EQ(MPI_Recv(&other, 1, MPI_INT, 1 - rank, 1000, comm, MPI_STATUS_IGNORE), MPI_SUCCESS);
                CHECK_EQ(other, -round);
            }
            MPI_Start(&pair[0]);
        }
        CHECK_EQ(class_of(MPI_Start(&pair[0])), MPI_ERR_REQUEST);
        if (round % 2) MPI_Waitall(2, pair, statuses);
        else end_any(&pair[0], round / 2, statuses), end_any(&pair[1], round / 2, statuses + 1);
        CHECK_EQ(got, round);
        CHECK_EQ(statuses[0].MPI_TAG, 8);
        CHECK_EQ(statuses[0].MPI_SOURCE, 1 - rank);
        CHECK(pair[0] == kept);
        // It is inactive: nothing is awaited, nothing can be cancelled.
        statuses[0].MPI_SOURCE = -7;
        MPI_Test(&pair[0], &flag, statuses);
        CHECK(flag && statuses[0].MPI_SOURCE == MPI_ANY_SOURCE);
        MPI_Request_get_status(pair[0], &flag, statuses);
        CHECK(flag && statuses[0].MPI_SOURCE == MPI_ANY_SOURCE);
        CHECK_EQ(class_of(MPI_Cancel(&pair[0])), MPI_ERR_REQUEST);
        if (round % 5 == 0) {
            MPI_Start(&pair[0]);
            MPI_Cancel(&pair[0]);
            MPI_Wait(&pair[0], statuses);
            MPI_Test_cancelled(statuses, &flag);
            CHECK(flag);
            // Nobody sends the next one before.
            MPI_Barrier(comm);
        }
        if (round % 7 == 0) {
            int long_one[2] = {5, 6}, before = heard;
            MPI_Start(&pair[0]);
            MPI_Send(long_one, 2, MPI_INT, 1 - rank, 8, comm);
            CHECK_EQ(class_of(MPI_Wait(&pair[0], MPI_STATUS_IGNORE)), MPI_ERR_TRUNCATE);
            CHECK_EQ(heard, before + 1);
        }
    }
    // One that is under way is freed, and goes on.
    MPI_Start(&pair[0]);
    MPI_Request_free(&pair[0]);
    value = 77;
    MPI_Start(&pair[1]);
    MPI_Wait(&pair[1], MPI_STATUS_IGNORE);
    MPI_Request_free(&pair[1]);
    MPI_Barrier(comm);
    while (got != 77) MPI_Iprobe(MPI_ANY_SOURCE, 3, comm, &flag, MPI_STATUS_IGNORE);
}

// Some of what is awaited together is over when the call comes, and some is nothing.
static void together(MPI_Comm comm) {
    enum { KINDS = 6 };
    for (int round = 0; round < ROUNDS; round++) {
        int got[2] = {-1, -1}, mine = rank, sum = -1, fails = round % 2, too_long[2] = {3, 4};
        MPI_Request requests[KINDS], handle = MPI_REQUEST_NULL;
        MPI_Status statuses[KINDS];
        for (int at = 0; at < KINDS; at++) statuses[at].MPI_ERROR = statuses[at].MPI_SOURCE = -7;
        MPI_Recv_init(&got[1], 1, MPI_INT, 1 - rank, 5, comm, &requests[0]);
        MPI_Isend(&round, 1, MPI_INT, 1 - rank, 1, comm, &requests[1]);
        requests[2] = handle;
        MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[3]);
        requests[4] = post(&got[0], 1, comm);
        requests[5] = post(&got[1], 2, comm);
        MPI_Send(too_long, 1 + fails, MPI_INT, 1 - rank, 2, comm);
        int code = MPI_Waitall(KINDS, requests, statuses);
        CHECK_EQ(class_of(code), fails ? MPI_ERR_IN_STATUS : MPI_SUCCESS);
        CHECK(sum == 1 && got[0] == round && got[1] == 3);
        CHECK(statuses[0].MPI_SOURCE == MPI_ANY_SOURCE && statuses[2].MPI_SOURCE == MPI_ANY_SOURCE);
        CHECK_EQ(statuses[4].MPI_SOURCE, 1 - rank);
        if (fails) CHECK_EQ(class_of(statuses[5].MPI_ERROR), MPI_ERR_TRUNCATE);
        CHECK_EQ(statuses[5].MPI_TAG, 2);
        for (int at = 0; fails && at < KINDS - 1; at++) CHECK_EQ(statuses[at].MPI_ERROR, MPI_SUCCESS);
        for (int at = 1; at < KINDS; at++) CHECK(requests[at] == MPI_REQUEST_NULL);
        MPI_Request_free(&requests[0]);
    }
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
    small_collectives(comm);
    small_collectives(MPI_COMM_WORLD);
    persistent(comm);
    together(comm);
    MPI_Comm_free(&comm);
    return finish();
}
