// As mistakes.c, of requests, matched probes, partitions and locks: mistaken_requests wrong, or right, with 3 ranks.
// Each runs all of its cases, one after the other. Tests: check/requests.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank, size;

// A call is to fail, and the program knows.
static void fails(int code)
{
    int class;
    MPI_Error_class(code, &class);
    if (class == MPI_SUCCESS)
        fprintf(stderr, "a call has not failed\n");
}

// A call may fail.
static void may_fail(int code)
{
    int class;
    MPI_Error_class(code, &class);
}

static int in[16], out[16];

// Requests in states that do not allow it.
static void start_twice(void)
{
    MPI_Request request;
    MPI_Recv_init(in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
    MPI_Start(&request);
    fails(MPI_Start(&request));
    MPI_Send(out, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

static void startall_twice(void)
{
    MPI_Request requests[2];
    MPI_Recv_init(in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[0]);
    MPI_Send_init(out, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[1]);
    MPI_Startall(2, requests);
    fails(MPI_Startall(1, requests + 1));
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++)
        MPI_Request_free(&requests[i]);
}

static void start_in_loop(void)
{
    MPI_Request request;
    int flag = 0;
    MPI_Recv_init(in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &request);
    for (int i = 0; i < 2; i++) {
        int code = MPI_Start(&request);
        if (i)
            fails(code);
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    }
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

static void free_collective(void)
{
    MPI_Request request;
    MPI_Iallreduce(out, in, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    may_fail(MPI_Request_free(&request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void free_barrier(void)
{
    MPI_Request requests[2];
    for (int i = 0; i < 2; i++)
        MPI_Ibarrier(MPI_COMM_WORLD, &requests[i]);
    may_fail(MPI_Request_free(&requests[0]));
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void cancel_collective(void)
{
    MPI_Request request;
    MPI_Ibcast(in, 4, MPI_INT, 0, MPI_COMM_WORLD, &request);
    may_fail(MPI_Cancel(&request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// Calls on requests that help nobody.
static void free_receive(void)
{
    MPI_Request request;
    MPI_Irecv(in, 1, MPI_INT, 0, 2, MPI_COMM_SELF, &request);
    MPI_Request_free(&request);
    MPI_Send(out, 1, MPI_INT, 0, 2, MPI_COMM_SELF);
}

static void free_any_receive(void)
{
    MPI_Request requests[2];
    for (int i = 0; i < 2; i++)
        MPI_Irecv(in + i, 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]);
    for (int i = 0; i < 2; i++)
        MPI_Send(out, 1, MPI_INT, 0, i, MPI_COMM_SELF);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Request_free(&requests[1]);
}

static void free_started(void)
{
    MPI_Request request;
    MPI_Recv_init(in, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &request);
    MPI_Start(&request);
    MPI_Send(out, 1, MPI_INT, 0, 3, MPI_COMM_SELF);
    MPI_Request_free(&request);
}

static void received_unless_cancelled(MPI_Status *status)
{
    int is_cancelled;
    MPI_Test_cancelled(status, &is_cancelled);
    if (!is_cancelled)
        MPI_Recv(in, 1, MPI_INT, 0, 4, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

static void cancel_send(void)
{
    MPI_Request request, expected;
    MPI_Status status;
    int is_cancelled;
    MPI_Isend(out, 1, MPI_INT, 0, 4, MPI_COMM_SELF, &request);
    MPI_Irecv(in, 1, MPI_INT, 0, 4, MPI_COMM_SELF, &expected);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &is_cancelled);
    if (is_cancelled)
        MPI_Cancel(&expected);
    MPI_Wait(&expected, MPI_STATUS_IGNORE);
}

static void cancel_synchronous(void)
{
    MPI_Request request;
    MPI_Status status;
    MPI_Issend(out, 1, MPI_INT, 0, 4, MPI_COMM_SELF, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    received_unless_cancelled(&status);
}

static void wait_unstarted(void)
{
    MPI_Request request;
    MPI_Send_init(out, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

static void wait_again(void)
{
    MPI_Request requests[2];
    MPI_Recv_init(in, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &requests[0]);
    MPI_Send_init(out, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &requests[1]);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    for (int i = 0; i < 2; i++)
        MPI_Request_free(&requests[i]);
}

static void wait_first(void)
{
    MPI_Request request;
    MPI_Recv_init(in, 1, MPI_INT, MPI_PROC_NULL, 5, MPI_COMM_SELF, &request);
    for (int i = 0; i < 2; i++) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Start(&request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

// Messages that a probe takes out of the queue.
static MPI_Message taken(MPI_Datatype type, int count, int source)
{
    MPI_Request request;
    MPI_Message message;
    MPI_Isend(out, count, type, 0, 6, MPI_COMM_SELF, &request);
    MPI_Mprobe(source, 6, MPI_COMM_SELF, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return message;
}

static void matched_types(void)
{
    MPI_Message message = taken(MPI_INT, 3, 0);
    MPI_Mrecv(in, 3, MPI_FLOAT, &message, MPI_STATUS_IGNORE);
}

static void matched_any(void)
{
    MPI_Message message = taken(MPI_SHORT, 4, MPI_ANY_SOURCE);
    MPI_Request request;
    MPI_Imrecv(in, 4, MPI_UNSIGNED_SHORT, &message, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void matched_from_next(void)
{
    int flag = 0;
    MPI_Message message;
    MPI_Request request;
    MPI_Isend(out, 2, MPI_DOUBLE, (rank + 1) % size, 6, MPI_COMM_WORLD, &request);
    while (!flag)
        MPI_Improbe((rank + size - 1) % size, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in, 2, MPI_LONG, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void matched_bytes(void)
{
    MPI_Message message = taken(MPI_INT, 3, 0);
    MPI_Mrecv(in, 12, MPI_BYTE, &message, MPI_STATUS_IGNORE);
}

static void matched_only(void)
{
    taken(MPI_INT, 5, 0);
}

// Windows under locks of several ranks.
static MPI_Win opened(void *memory, MPI_Aint bytes)
{
    MPI_Win window;
    memset(memory, 0, bytes);
    MPI_Win_create(memory, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    return window;
}

static void closed(MPI_Win window)
{
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&window);
}

static int memory[16], mine[4];

static void locked_puts(void)
{
    MPI_Win window = opened(memory, sizeof memory);
    for (int i = 0; i < 4; i++)
        mine[i] = 10 * rank + i;
    MPI_Win_lock_all(0, window);
    MPI_Put(mine, 4, MPI_INT, 0, rank, 4, MPI_INT, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(window);
    closed(window);
}

static void locked_put_and_get(void)
{
    MPI_Win window = opened(memory, sizeof memory);
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
    if (rank == 0)
        MPI_Get(mine, 2, MPI_INT, 1, 8, 2, MPI_INT, window);
    else if (rank == 2)
        MPI_Put(out, 1, MPI_INT, 1, 9, 1, MPI_INT, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock(1, window);
    closed(window);
}

static void locked_accumulates(void)
{
    MPI_Win window = opened(memory, sizeof memory);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    if (rank < 2)
        MPI_Accumulate(out, 1, MPI_INT, 2, 3, 1, MPI_INT, rank ? MPI_SUM : MPI_PROD, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_flush_all(window);
    MPI_Win_unlock_all(window);
    closed(window);
}

static void right_locks(void)
{
    MPI_Win window = opened(memory, sizeof memory);
    int one = 1, old;
    MPI_Win_lock_all(0, window);
    // Other bytes, and operations that combine.
    MPI_Put(mine, 1, MPI_INT, 0, rank, 1, MPI_INT, window);
    MPI_Accumulate(&one, 1, MPI_INT, 0, 8, 1, MPI_INT, MPI_SUM, window);
    MPI_Fetch_and_op(&one, &old, MPI_INT, 0, 8, MPI_SUM, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_flush(0, window);
    // One after the other.
    for (int turn = 0; turn < size; turn++) {
        if (turn == rank) {
            MPI_Put(mine, 4, MPI_INT, 1, 4, 4, MPI_INT, window);
            MPI_Win_flush(1, window);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    // A word that another rank combines something with.
    if (rank == 1)
        MPI_Accumulate(&one, 1, MPI_INT, 1, 12, 1, MPI_INT, MPI_SUM, window);
    for (old = rank == 1; old == 0; MPI_Win_flush(1, window))
        MPI_Get(&old, 1, MPI_INT, 1, 12, 1, MPI_INT, window);
    MPI_Win_unlock_all(window);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, window);
    MPI_Put(mine, 4, MPI_INT, 2, 4, 4, MPI_INT, window);
    MPI_Win_unlock(2, window);
    closed(window);
}

static void right_matched(void)
{
    struct { int count; float part; } pairs[2] = {{0, 0}, {1, 1}};
    int lengths[2] = {1, 1};
    MPI_Aint places[2] = {0, sizeof(int)};
    MPI_Datatype parts[2] = {MPI_INT, MPI_FLOAT}, pair;
    MPI_Type_create_struct(2, lengths, places, parts, &pair);
    MPI_Type_commit(&pair);
    MPI_Message message = taken(pair, 1, 0);
    MPI_Mrecv(pairs, 2, pair, &message, MPI_STATUS_IGNORE);
    message = taken(MPI_INT, 0, 0);
    MPI_Mrecv(in, 0, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
    MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_SELF, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    MPI_Type_free(&pair);
}

static void right_requests(void)
{
    MPI_Request requests[3];
    MPI_Recv_init(in, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &requests[0]);
    MPI_Send_init(out, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &requests[1]);
    requests[2] = MPI_REQUEST_NULL;
    for (int i = 0; i < 3; i++) {
        MPI_Startall(2, requests);
        if (i == 1) {
            int index;
            for (int done = 0; done < 2; done++)
                MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
        } else {
            MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        }
    }
    MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
    // A send may be given away, and a receive cancelled.
    MPI_Start(&requests[0]);
    MPI_Start(&requests[1]);
    MPI_Request_free(&requests[1]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Start(&requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Request_free(&requests[0]);
}

// Partitions.
static MPI_Request ends[2];

static void made(int partitions, int count, MPI_Datatype type)
{
    MPI_Psend_init(out, partitions, count, type, 0, 7, MPI_COMM_SELF, MPI_INFO_NULL, &ends[0]);
    MPI_Precv_init(in, partitions, count, type, 0, 7, MPI_COMM_SELF, MPI_INFO_NULL, &ends[1]);
}

static void over(void)
{
    MPI_Waitall(2, ends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++)
        MPI_Request_free(&ends[i]);
}

static void ready_twice(void)
{
    made(4, 2, MPI_INT);
    MPI_Startall(2, ends);
    for (int i = 0; i < 4; i++)
        MPI_Pready(i, ends[0]);
    fails(MPI_Pready(2, ends[0]));
    over();
}

static void ready_in_list(void)
{
    int list[] = {0, 1, 0};
    made(2, 4, MPI_INT);
    MPI_Startall(2, ends);
    fails(MPI_Pready_list(3, list, ends[0]));
    over();
}

static void ready_before_start(void)
{
    made(2, 4, MPI_INT);
    fails(MPI_Pready_range(0, 1, ends[0]));
    MPI_Startall(2, ends);
    MPI_Pready_range(0, 1, ends[0]);
    over();
}

static void ready_receive(void)
{
    made(2, 4, MPI_INT);
    MPI_Startall(2, ends);
    fails(MPI_Pready(0, ends[1]));
    MPI_Pready_range(0, 1, ends[0]);
    over();
}

static void cancel_partitioned(void)
{
    made(2, 4, MPI_INT);
    MPI_Startall(2, ends);
    fails(MPI_Cancel(&ends[1]));
    MPI_Pready_range(0, 1, ends[0]);
    over();
}

static void changed_partition(void)
{
    made(4, 2, MPI_INT);
    MPI_Startall(2, ends);
    for (int i = 0; i < 4; i++) {
        MPI_Pready(i, ends[0]);
        out[2 * i + 1]++;
    }
    over();
}

static void changed_range(void)
{
    made(2, 4, MPI_INT);
    MPI_Startall(2, ends);
    MPI_Pready_range(0, 1, ends[0]);
    out[5]++;
    int flag = 0;
    while (!flag)
        MPI_Test(&ends[0], &flag, MPI_STATUS_IGNORE);
    over();
}

static void changed_in_list(void)
{
    int list[] = {1, 0};
    made(2, 1, MPI_DOUBLE);
    MPI_Startall(2, ends);
    MPI_Pready_list(2, list, ends[0]);
    memset(out, 77, sizeof out);
    over();
}

static void partition_types(void)
{
    MPI_Psend_init(out, 2, 4, MPI_INT, 0, 8, MPI_COMM_SELF, MPI_INFO_NULL, &ends[0]);
    MPI_Precv_init(in, 4, 2, MPI_FLOAT, 0, 8, MPI_COMM_SELF, MPI_INFO_NULL, &ends[1]);
    MPI_Startall(2, ends);
    MPI_Pready_range(0, 1, ends[0]);
    over();
}

static void partition_bytes(void)
{
    MPI_Precv_init(in, 1, 32, MPI_BYTE, 0, 9, MPI_COMM_SELF, MPI_INFO_NULL, &ends[1]);
    MPI_Psend_init(out, 2, 4, MPI_INT, 0, 9, MPI_COMM_SELF, MPI_INFO_NULL, &ends[0]);
    MPI_Startall(2, ends);
    MPI_Pready_range(0, 1, ends[0]);
    over();
}

static void partitions_left(void)
{
    made(1, 1, MPI_INT);
    MPI_Start(&ends[1]);
    // The call above is not the last, whose place a jump would take.
    out[0] = 0;
}

static void right_partitions(void)
{
    // A partition may be written before it is ready, and used when it has arrived. Both ends cut as they like.
    int list[] = {2, 3}, flag = 0, *all = in + 0;
    MPI_Psend_init(out, 4, 2, MPI_INT, 0, 10, MPI_COMM_SELF, MPI_INFO_NULL, &ends[0]);
    MPI_Precv_init(all, 2, 4, MPI_INT, 0, 10, MPI_COMM_SELF, MPI_INFO_NULL, &ends[1]);
    for (int round = 0; round < 3; round++) {
        MPI_Startall(2, ends);
        for (int i = 0; i < 2; i++) {
            MPI_Sendrecv(&round, 1, MPI_INT, 0, 1, &out[2 * i], 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
            MPI_Pready(i, ends[0]);
        }
        while (!flag)
            MPI_Parrived(ends[1], 0, &flag);
        flag = 0;
        all[0] = 5;
        MPI_Pready_list(2, list, ends[0]);
        MPI_Waitall(2, ends, MPI_STATUSES_IGNORE);
        MPI_Parrived(ends[1], 1, &flag);
        flag = 0;
    }
    for (int i = 0; i < 2; i++)
        MPI_Request_free(&ends[i]);
}

static void (*const wrong[])(void) = {
    start_twice,        startall_twice,     start_in_loop,      free_collective,   free_barrier,  cancel_collective,
    free_receive,       free_any_receive,   free_started,       cancel_send,       cancel_synchronous,
    wait_unstarted,     wait_again,         wait_first,         matched_types,     matched_any,   matched_from_next,
    matched_bytes,      matched_only,       locked_puts,        locked_put_and_get, locked_accumulates,
    ready_twice,        ready_in_list,      ready_before_start, ready_receive,     cancel_partitioned,
    changed_partition,  changed_range,      changed_in_list,    partition_types,   partition_bytes, partitions_left,
};

static void (*const right[])(void) = {right_locks, right_matched, right_requests, right_partitions};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && !strcmp(argv[1], "right")) {
        for (size_t i = 0; i < sizeof right / sizeof *right; i++)
            right[i]();
    } else {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
            wrong[i]();
    }
    MPI_Finalize();
    return 0;
}
