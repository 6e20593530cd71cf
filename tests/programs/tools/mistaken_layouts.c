// As mistaken_requests.c, of layouts, types of windows, attached memory, lists of requests and data of collectives:
// mistaken_layouts wrong, or right, with 3 ranks. Tests: check/layouts.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, in[64], out[64];

// Layouts that have a byte more than once.
static MPI_Datatype indexed(int second)
{
    int lengths[] = {2, 2}, places[] = {0, second};
    MPI_Datatype type;
    MPI_Type_indexed(2, lengths, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

static void receive_twice(void)
{
    MPI_Datatype type = indexed(1);
    MPI_Sendrecv(out, 4, MPI_INT, rank, 1, in, 1, type, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
}

static void receive_shrunk(void)
{
    // Each element begins where the first half of the one before ends.
    MPI_Datatype pair, type;
    MPI_Request request;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_create_resized(pair, 0, sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&pair);
    MPI_Irecv(in, 3, type, rank, 2, MPI_COMM_WORLD, &request);
    MPI_Send(out, 6, MPI_INT, rank, 2, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
}

static void broadcast_twice(void)
{
    MPI_Datatype type;
    MPI_Type_vector(3, 4, 2, MPI_CHAR, &type);
    MPI_Type_commit(&type);
    MPI_Bcast(in, 1, type, 0, MPI_COMM_WORLD);
    MPI_Type_free(&type);
}

static void gather_to_one_place(void)
{
    int counts[] = {2, 2, 2}, places[] = {0, 1, 6};
    MPI_Gatherv(out, 2, MPI_INT, in, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
}

static void allgather_to_one_place(void)
{
    int counts[] = {1, 3, 1}, places[] = {2, 0, 8};
    MPI_Allgatherv(out, rank == 1 ? 3 : 1, MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
}

static void alltoall_to_one_place(void)
{
    MPI_Request request;
    int counts[] = {1, 1, 1}, from[] = {0, 1, 2}, to[] = {3, 3, 5};
    MPI_Ialltoallv(out, counts, from, MPI_INT, in, counts, to, MPI_INT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void put_twice(MPI_Win win)
{
    MPI_Datatype type = indexed(1);
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Put(out, 4, MPI_INT, 1, 0, 1, type, win);
    MPI_Win_fence(0, win);
    MPI_Type_free(&type);
}

// Accesses whose two ends have other types.
static void put_types(MPI_Win win)
{
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Put(out, 2, MPI_FLOAT, 1, 0, 1, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);
}

static void get_types(MPI_Win win)
{
    MPI_Win_lock_all(0, win);
    if (rank == 1)
        MPI_Get(in, 2, MPI_INT, 0, 0, 2, MPI_FLOAT, win);
    MPI_Win_unlock_all(win);
}

static void get_bytes(MPI_Win win)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    if (rank == 1)
        MPI_Get(in, 8, MPI_BYTE, 0, 0, 2, MPI_INT, win);
    MPI_Win_unlock(0, win);
}

// Requests that are twice in a list.
static void waited_for_twice(void)
{
    MPI_Request requests[2];
    MPI_Irecv(in, 1, MPI_INT, rank, 3, MPI_COMM_WORLD, &requests[0]);
    requests[1] = requests[0];
    MPI_Send(out, 1, MPI_INT, rank, 3, MPI_COMM_WORLD);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void tested_twice(void)
{
    int flag = 0, done;
    MPI_Request requests[3];
    MPI_Irecv(in, 1, MPI_INT, rank, 4, MPI_COMM_WORLD, &requests[1]);
    requests[0] = MPI_REQUEST_NULL;
    requests[2] = requests[1];
    MPI_Send(out, 1, MPI_INT, rank, 4, MPI_COMM_WORLD);
    while (!flag)
        MPI_Testany(3, requests, &done, &flag, MPI_STATUS_IGNORE);
}

static void barrier_waited_for_twice(void)
{
    int count, done[2];
    MPI_Request requests[2];
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
    requests[1] = requests[0];
    MPI_Waitsome(2, requests, &count, done, MPI_STATUSES_IGNORE);
}

// Memory that is attached to a window, and gone.
static void attached_and_freed(void)
{
    MPI_Win win;
    int *memory = malloc(400);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_attach(win, memory, 400);
    free(memory);
    MPI_Win_free(&win);
}

static void freed_before_it_is_detached(void)
{
    MPI_Win win;
    int *memory = malloc(300), *volatile gone = memory;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_attach(win, memory, 300);
    free(memory);
    MPI_Win_detach(win, gone);
    MPI_Win_free(&win);
}

static void attached_beyond(void)
{
    MPI_Win win;
    int *memory = malloc(200);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_attach(win, memory, 208);
    MPI_Win_detach(win, memory);
    MPI_Win_free(&win);
    free(memory);
}

// Data of collective operations that changes while they read it.
static void changed_reduction(void)
{
    MPI_Request request;
    MPI_Iallreduce(out, in, 10, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    out[7]++;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void changed_broadcast(void)
{
    MPI_Request request;
    MPI_Ibcast(out, 64, MPI_INT, 1, MPI_COMM_WORLD, &request);
    if (rank == 1)
        memset(out, 1, sizeof out);
    MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
}

static void changed_gather(void)
{
    MPI_Request request;
    MPI_Gather_init(out, 2, MPI_INT, in, 2, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    out[1]++;
    MPI_Start(&request);
    out[0]++;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

// What is right: layouts that go backwards, that interleave, that are sent twice; lists with several nulls.
static void right_layouts(void)
{
    int counts[] = {2, 2, 2}, places[] = {2, 0, 4};
    MPI_Datatype backwards = indexed(-2), twice = indexed(1), column;
    MPI_Sendrecv(out, 4, MPI_INT, rank, 1, in + 2, 1, backwards, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(out, 1, twice, rank, 1, in, 4, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Gatherv(out, 2, MPI_INT, in, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Type_free(&twice);
    // Columns of a matrix lie between each other.
    MPI_Type_vector(4, 1, 4, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, sizeof(int), &twice);
    MPI_Type_commit(&twice);
    MPI_Type_free(&column);
    MPI_Allgather(out, 4, MPI_INT, in, 1, twice, MPI_COMM_WORLD);
    counts[0] = counts[1] = counts[2] = 1;
    places[0] = 1;
    places[1] = 0;
    places[2] = 2;
    MPI_Allgatherv(out, 4, MPI_INT, in, counts, places, twice, MPI_COMM_WORLD);
    MPI_Type_free(&twice);
    MPI_Type_free(&backwards);
    // A part of which nothing comes may be anywhere.
    counts[1] = places[0] = 0;
    MPI_Allgatherv(out, rank != 1, MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
}

static void right_windows(MPI_Win win)
{
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Win_fence(0, win);
    MPI_Put(out, 2, MPI_INT, (rank + 1) % size, 0, 1, pair, win);
    MPI_Accumulate(out, 1, pair, (rank + 1) % size, 8, 2, MPI_INT, MPI_SUM, win);
    // What is only fetched has no origin.
    MPI_Get_accumulate(NULL, 7, MPI_DOUBLE, in, 1, MPI_INT, (rank + 1) % size, 12, 1, MPI_INT, MPI_NO_OP, win);
    MPI_Win_fence(0, win);
    MPI_Type_free(&pair);
}

static void right_memory(void)
{
    MPI_Win win;
    char *memory = malloc(128);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int i = 0; i < 3; i++) {
        MPI_Win_attach(win, memory, 64);
        MPI_Win_attach(win, memory + 64, 64);
        MPI_Win_detach(win, memory);
        MPI_Win_detach(win, memory + 64);
        free(memory);
        memory = malloc(128);
    }
    MPI_Win_free(&win);
    free(memory);
}

static void right_lists(void)
{
    MPI_Request requests[4] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    // Sends that are complete at once share a handle.
    for (int i = 0; i < 3; i++)
        MPI_Isend(&out[i], 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < 3; i++)
        MPI_Recv(&in[i], 1, MPI_INT, rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static void right_collectives(void)
{
    // Between starts data may change, and what is received in place is the operation's own.
    MPI_Request requests[2];
    MPI_Allreduce_init(out, in, 4, MPI_INT, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    for (int i = 0; i < 3; i++) {
        out[2] = i;
        MPI_Start(&requests[0]);
        MPI_Ibcast(in + 32, 8, MPI_INT, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        in[32] = i;
    }
    MPI_Request_free(&requests[0]);
    MPI_Iallreduce(MPI_IN_PLACE, in, 16, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 4, MPI_INT, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int *memory;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_allocate(256, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 0, 256);
    if (argc > 1 && !strcmp(argv[1], "right")) {
        right_layouts();
        right_windows(win);
        right_memory();
        right_lists();
        right_collectives();
    } else {
        // What several lists leave of a request stands for nothing.
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        receive_twice();
        receive_shrunk();
        broadcast_twice();
        gather_to_one_place();
        allgather_to_one_place();
        alltoall_to_one_place();
        put_twice(win);
        put_types(win);
        get_types(win);
        get_bytes(win);
        waited_for_twice();
        tested_twice();
        barrier_waited_for_twice();
        attached_and_freed();
        freed_before_it_is_detached();
        attached_beyond();
        changed_reduction();
        changed_broadcast();
        changed_gather();
    }
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
