// Programs with one mistake each, for `pip-exec --check`: mistakes MODE, with 3 ranks. The modes that begin with right_
// have none. Tests: check/.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "modes.h"

static int rank, size;

// Objects that are not freed.
static void leak_comm(void)
{
    MPI_Comm half, copy;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    MPI_Comm_dup(half, &copy);
    MPI_Comm_free(&copy);
}

static void leak_type(void)
{
    MPI_Datatype column;
    MPI_Type_vector(4, 1, 4, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
}

static void add(void *in, void *out, int *count, MPI_Datatype *type)
{
    (void)in, (void)out, (void)count, (void)type;
}

static void complain(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
}

static void leak_rest(void)
{
    MPI_Group all, one;
    MPI_Op op;
    MPI_Info info;
    MPI_Errhandler handler;
    MPI_Request persistent;
    int zero = 0;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &zero, &one);
    MPI_Group_free(&all);
    MPI_Op_create(add, 1, &op);
    MPI_Info_create(&info);
    MPI_Comm_create_errhandler(complain, &handler);
    MPI_Send_init(&zero, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &persistent);
}

// Requests that are never completed.
static void lost_in_loop(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int out[3] = {1, 2, 3}, in[3];
    if (rank == 0) {
        for (int i = 0; i < 3; i++)
            MPI_Isend(&out[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        for (int i = 0; i < 3; i++)
            MPI_Recv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void receive_left(void)
{
    static int in;
    MPI_Request request;
    if (rank == 0)
        MPI_Irecv(&in, 1, MPI_INT, 1, 77, MPI_COMM_WORLD, &request);
}

static void one_of_some(void)
{
    static int data[2];
    MPI_Request requests[2];
    for (int i = 0; i < 2; i++)
        if (rank == 0)
            MPI_Irecv(&data[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
        else if (rank == 1)
            MPI_Send(&data[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD);
    int index;
    if (rank == 0)
        MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
}

static void barrier_left(void)
{
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
}

// The same in processes that are spawned.
static const char *program;

static void spawned(void)
{
    MPI_Comm children;
    char mode[] = "barrier_left", *arguments[] = {mode, NULL};
    MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Comm_free(&children);
}

static void reduction_tested(void)
{
    static int in = 1, out;
    MPI_Request request;
    int flag = 0;
    MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    if (rank == 0)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    else
        MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void gather_overwritten(void)
{
    static int in, out[2][8];
    MPI_Request request;
    for (int i = 0; i < 2; i++)
        MPI_Iallgather(&in, 1, MPI_INT, out[i], 1, MPI_INT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

// Buffers that change while they are sent.
static void changed_array(void)
{
    double data[100] = {0};
    MPI_Request requests[2];
    if (rank == 0) {
        for (int i = 0; i < 2; i++)
            MPI_Issend(data + 50 * i, 50, MPI_DOUBLE, 1, i, MPI_COMM_WORLD, &requests[i]);
        data[70] = 1;
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else if (rank == 1) {
        for (int i = 0; i < 2; i++)
            MPI_Recv(data + 50 * i, 50, MPI_DOUBLE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void changed_persistent(void)
{
    static char text[20000];
    MPI_Request request;
    if (rank == 0) {
        MPI_Send_init(text, sizeof text, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
        for (int i = 0; i < 2; i++) {
            text[0] = (char)i;
            MPI_Start(&request);
            text[15000] += (char)i;
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Request_free(&request);
    } else if (rank == 1) {
        for (int i = 0; i < 2; i++)
            MPI_Recv(text, sizeof text, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void changed_column(void)
{
    int data[4][4] = {{0}}, in[4], flag = 0;
    MPI_Datatype column;
    MPI_Type_vector(4, 1, 4, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Request request;
    if (rank == 0) {
        MPI_Isend(&data[0][1], 1, column, 1, 0, MPI_COMM_WORLD, &request);
        data[2][1] = 5;
        while (!flag)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(in, 4, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Type_free(&column);
}

// Buffers that overlap.
static void send_and_receive(void)
{
    static int data[8];
    MPI_Request requests[2];
    int peer = rank ^ 1;
    if (rank > 1)
        return;
    MPI_Irecv(data, 5, MPI_INT, peer, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(data + 4, 4, MPI_INT, peer, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void exchange_of_one(void)
{
    static char text[72];
    if (rank < 2)
        MPI_Sendrecv(text, 40, MPI_CHAR, rank ^ 1, 0, text + 32, 40, MPI_CHAR, rank ^ 1, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
}

static void blocking_into_pending(void)
{
    static double sum[2];
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, sum, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    if (rank == 0)
        MPI_Recv(&sum[1], 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    static double other;
    if (rank == 1)
        MPI_Send(&other, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// Threads.
static void *meets(void *nothing)
{
    int flag;
    for (int i = 0; i < 20000; i++)
        MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    return nothing;
}

static void at_once(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, meets, NULL);
    meets(NULL);
    pthread_join(thread, NULL);
}

static void *calls(void *nothing)
{
    MPI_Barrier(MPI_COMM_SELF);
    return nothing;
}

static void other_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, calls, NULL);
    pthread_join(thread, NULL);
}

// Windows.
static MPI_Win opened(void *memory, MPI_Aint bytes)
{
    MPI_Win window;
    MPI_Win_create(memory, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    return window;
}

static void puts_meet(void)
{
    static int memory[8], out[4];
    out[0] = rank;
    MPI_Win window = opened(memory, sizeof memory);
    MPI_Win_fence(0, window);
    if (rank < 2)
        MPI_Put(out, 4, MPI_INT, 2, rank * 3, 4, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

static void put_and_get(void)
{
    static int memory[8], mine[2];
    MPI_Win window = opened(memory, sizeof memory);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
        MPI_Put(&mine[0], 1, MPI_INT, 1, 5, 1, MPI_INT, window);
        MPI_Get(&mine[1], 1, MPI_INT, 1, 5, 1, MPI_INT, window);
        MPI_Win_unlock(1, window);
    }
    MPI_Win_free(&window);
}

static void other_operation(void)
{
    static int memory[8], one = 1;
    MPI_Win window = opened(memory, sizeof memory);
    MPI_Win_fence(0, window);
    MPI_Accumulate(&one, 1, MPI_INT, 0, 2, 1, MPI_INT, rank ? MPI_SUM : MPI_MAX, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

static void origin_changed(void)
{
    static int memory[8], out[2];
    MPI_Win window = opened(memory, sizeof memory);
    MPI_Win_lock_all(0, window);
    if (rank == 1) {
        MPI_Put(out, 2, MPI_INT, 0, 0, 2, MPI_INT, window);
        out[1] = 5;
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

// Errors that nobody looks at.
static void ignored_length(void)
{
    int out[4] = {0}, in;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Request request;
    MPI_Isend(out, 4, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
    MPI_Recv(&in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void ignored_rank(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 3; i++)
        MPI_Send(&i, 1, MPI_INT, size + i, 0, MPI_COMM_WORLD);
}

static void goes_on(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
}

static void ignored_by_handler(void)
{
    MPI_Errhandler handler;
    MPI_Group group;
    int ranks[2] = {0, 0};
    MPI_Comm_create_errhandler(goes_on, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Errhandler_free(&handler);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Bcast(ranks, 1, MPI_INT, 7, MPI_COMM_WORLD);
    MPI_Group_free(&group);
}

// Nothing wrong.
static void right_errors(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = MPI_Send(&size, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
    if (code != MPI_SUCCESS)
        MPI_Error_string(code, text, &length);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void right_windows(void)
{
    static int memory[8], out[3] = {1, 2, 3}, in[3], same = 9;
    MPI_Win window = opened(memory, sizeof memory);
    MPI_Win_fence(0, window);
    MPI_Put(out, 1, MPI_INT, 0, rank, 1, MPI_INT, window);
    MPI_Put(&same, 1, MPI_INT, 2, 5, 1, MPI_INT, window);
    MPI_Accumulate(out, 1, MPI_INT, 1, 7, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    out[0] = 7;
    MPI_Put(out, 1, MPI_INT, 0, (rank + 1) % size, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Get(in, 3, MPI_INT, 0, 0, 3, MPI_INT, window);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    in[0] = 0;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Put(out, 1, MPI_INT, 0, 4, 1, MPI_INT, window);
    MPI_Win_flush(0, window);
    MPI_Get(in, 1, MPI_INT, 0, 4, 1, MPI_INT, window);
    MPI_Win_unlock(0, window);
    MPI_Win_free(&window);
}

static void right_requests(void)
{
    int out[4], in[4], done = 0, count, indexes[8], flag = 0;
    MPI_Request requests[8], copy;
    MPI_Status statuses[8];
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    for (int i = 0; i < 4; i++) {
        out[i] = rank + i;
        MPI_Irecv(&in[i], 1, MPI_INT, last, i, MPI_COMM_WORLD, &copy);
        requests[i] = copy;
        MPI_Isend(&out[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &copy);
        requests[4 + i] = copy;
    }
    while (done < 8) {
        MPI_Waitsome(8, requests, &count, indexes, done ? statuses : MPI_STATUSES_IGNORE);
        done += count;
    }
    MPI_Request persistent[2];
    MPI_Send_init(out, 2, MPI_INT, next, 9, MPI_COMM_WORLD, &persistent[0]);
    MPI_Recv_init(in, 2, MPI_INT, last, 9, MPI_COMM_WORLD, &persistent[1]);
    for (int i = 0; i < 3; i++) {
        out[0] = i;
        MPI_Startall(2, persistent);
        while (!flag)
            MPI_Testall(2, persistent, &flag, MPI_STATUSES_IGNORE);
        flag = 0;
        if (in[0] != i)
            MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Request_free(&persistent[0]);
    MPI_Request_free(&persistent[1]);
    MPI_Isend(out, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &copy);
    MPI_Request_free(&copy);
    MPI_Recv(in, 1, MPI_INT, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(in, 1, MPI_INT, last, 12345, MPI_COMM_WORLD, &copy);
    MPI_Cancel(&copy);
    MPI_Wait(&copy, MPI_STATUS_IGNORE);
}

static void right_copies(void)
{
    // Handles are kept elsewhere than where MPI has put them, and buffers used again one after the other.
    int out[6], in;
    MPI_Request kept[6], request;
    for (int i = 0; i < 6; i++) {
        out[i] = i;
        MPI_Isend(&out[i], 1, MPI_INT, rank, i, MPI_COMM_WORLD, &request);
        kept[5 - i] = request;
    }
    for (int i = 0; i < 6; i++) {
        MPI_Recv(&in, 1, MPI_INT, rank, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&kept[5 - i], MPI_STATUS_IGNORE);
        out[i] = -1;
        MPI_Sendrecv(&in, 1, MPI_INT, rank, 9, &out[i], 1, MPI_INT, rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void right_columns(void)
{
    // Columns of one array: their bounds overlap, their bytes do not.
    int out[4] = {1, 2, 3, 4}, in[4][4];
    MPI_Datatype column;
    MPI_Type_vector(4, 1, 4, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Request requests[8];
    for (int i = 0; i < 4; i++)
        MPI_Irecv(&in[0][i], 1, column, rank, i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < 4; i++)
        MPI_Isend(out, 4, MPI_INT, rank, i, MPI_COMM_WORLD, &requests[4 + i]);
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    MPI_Type_free(&column);
}

static void right_objects(void)
{
    MPI_Comm copy, grid;
    MPI_Group group;
    MPI_Info info;
    MPI_Request request;
    int dims[1] = {size}, wrap[1] = {1};
    MPI_Comm_idup(MPI_COMM_WORLD, &copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Cart_create(copy, 1, dims, wrap, 0, &grid);
    MPI_Comm_group(grid, &group);
    MPI_Comm_get_info(grid, &info);
    MPI_Info_free(&info);
    MPI_Group_free(&group);
    MPI_Comm_free(&grid);
    MPI_Comm_free(&copy);
}

// What is sent changes as well, by what is received into it: that is one mistake.
static void received_while_sent(void)
{
    static int data[8], other[4] = {-1, -2, -3, -4};
    MPI_Request request;
    if (rank > 1)
        return;
    if (rank == 0) {
        MPI_Issend(data, 6, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Recv(data + 4, 4, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(other, 4, MPI_INT, 0, 0, MPI_COMM_WORLD);
        MPI_Recv(data, 6, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static const struct mode modes[] = {
    MODE(leak_comm),
    MODE(leak_type),
    MODE(leak_rest),
    MODE(lost_in_loop),
    MODE(receive_left),
    MODE(one_of_some),
    MODE(barrier_left),
    MODE(spawned),
    MODE(reduction_tested),
    MODE(gather_overwritten),
    MODE(changed_array),
    MODE(changed_persistent),
    MODE(changed_column),
    MODE(send_and_receive),
    MODE(exchange_of_one),
    MODE(received_while_sent),
    MODE(blocking_into_pending),
    MODE(puts_meet),
    MODE(put_and_get),
    MODE(other_operation),
    MODE(origin_changed),
    MODE(right_windows),
    MODE(ignored_length),
    MODE(ignored_rank),
    MODE(ignored_by_handler),
    MODE(right_errors),
    MODE(at_once),
    MODE(other_thread),
    MODE(right_requests),
    MODE(right_copies),
    MODE(right_columns),
    MODE(right_objects),
    {"funneled_thread", other_thread},
    {"right_threads", at_once},
};

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    int level = !strcmp(mode, "at_once") ? MPI_THREAD_SERIALIZED : MPI_THREAD_SINGLE, provided;
    program = argv[0];
    if (!strcmp(mode, "right_threads"))
        level = MPI_THREAD_MULTIPLE;
    if (!strcmp(mode, "funneled_thread"))
        level = MPI_THREAD_FUNNELED;
    if (!strcmp(mode, "other_thread"))
        MPI_Init(&argc, &argv);
    else
        MPI_Init_thread(&argc, &argv, level, &provided);
    return run(modes, sizeof modes / sizeof *modes, mode, &rank, &size);
}
