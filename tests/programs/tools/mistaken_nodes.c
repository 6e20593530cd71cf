// As mistakes.c, of messages and windows between nodes: mistaken_nodes wrong, or right, with 2 ranks on each of 2
// nodes. Each runs all of its cases, one after the other. Tests: check/nodes.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { MANY = 60000 };

static int rank, in[16], out[16];
static double many[MANY];
static MPI_Comm world;

// So each has a line of its own.
#define send(count, type, to, tag) MPI_Send(out, count, type, to, tag, world)
#define receive(count, type, from, tag) MPI_Recv(in, count, type, from, tag, world, MPI_STATUS_IGNORE)

// Types that differ.
static void types_short(void)
{
    if (rank == 0)
        send(3, MPI_FLOAT, 2, 1);
    if (rank == 2)
        receive(3, MPI_INT, 0, 1);
}

static void types_long(void)
{
    MPI_Request request;
    if (rank == 1)
        MPI_Isend(many, MANY, MPI_DOUBLE, 3, 2, world, &request);
    if (rank == 3)
        MPI_Irecv(many, MANY, MPI_LONG, 1, 2, world, &request);
    if (rank % 2 == 1)
        MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
}

static void types_any(void)
{
    if (rank == 2)
        send(1, MPI_LONG, 0, 3);
    if (rank == 0)
        receive(4, MPI_DOUBLE, MPI_ANY_SOURCE, 3);
}

static void types_persistent(void)
{
    MPI_Request request;
    if (rank == 3)
        MPI_Send_init(out, 4, MPI_UNSIGNED, 1, 4, world, &request);
    if (rank == 1)
        MPI_Recv_init(in, 4, MPI_INT, 3, 4, world, &request);
    if (rank % 2 == 1) {
        for (int i = 0; i < 3; i++) {
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Request_free(&request);
    }
}

// A type of two others.
static MPI_Datatype pair(MPI_Datatype first, MPI_Datatype second)
{
    MPI_Datatype type;
    MPI_Datatype types[2] = {first, second};
    int counts[2] = {1, 1};
    MPI_Aint places[2] = {0, 4};
    MPI_Type_create_struct(2, counts, places, types, &type);
    MPI_Type_commit(&type);
    return type;
}

static void types_struct(void)
{
    MPI_Datatype theirs = pair(MPI_INT, MPI_FLOAT), ours = pair(MPI_FLOAT, MPI_INT);
    if (rank == 0)
        send(2, theirs, 3, 5);
    if (rank == 3)
        receive(2, ours, 0, 5);
    MPI_Type_free(&theirs);
    MPI_Type_free(&ours);
}

static void types_matched(void)
{
    MPI_Message message;
    MPI_Status status;
    if (rank == 1)
        send(4, MPI_SHORT, 2, 6);
    if (rank == 2) {
        MPI_Mprobe(MPI_ANY_SOURCE, 6, world, &message, &status);
        MPI_Mrecv(in, 4, MPI_UNSIGNED_SHORT, &message, &status);
    }
}

static void types_partitions(void)
{
    MPI_Request request;
    if (rank == 0)
        MPI_Psend_init(out, 2, 4, MPI_INT, 2, 7, world, MPI_INFO_NULL, &request);
    if (rank == 2)
        MPI_Precv_init(in, 1, 8, MPI_FLOAT, 0, 7, world, MPI_INFO_NULL, &request);
    if (rank % 2 == 0) {
        MPI_Start(&request);
        if (rank == 0)
            MPI_Pready_range(0, 1, request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    }
}

static void types_exchanged(void)
{
    MPI_Datatype type = rank == 0 ? MPI_INT : MPI_FLOAT;
    if (rank % 2 == 0)
        MPI_Sendrecv(out, 2, MPI_INT, 2 - rank, 8, in, 2, type, 2 - rank, 8, world, MPI_STATUS_IGNORE);
}

// The second of three, which the first receive from any source takes.
static void types_second(void)
{
    MPI_Request requests[3];
    if (rank == 1) {
        send(1, MPI_INT, 3, 9);
        send(1, MPI_FLOAT, 3, 10);
        send(1, MPI_INT, 3, 9);
    }
    if (rank == 3) {
        MPI_Irecv(in, 1, MPI_INT, MPI_ANY_SOURCE, 10, world, &requests[0]);
        MPI_Irecv(in + 1, 1, MPI_INT, 1, MPI_ANY_TAG, world, &requests[1]);
        MPI_Irecv(in + 2, 1, MPI_INT, 1, 9, world, &requests[2]);
        for (int i = 2; i >= 0; i--)
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
}

// Bytes at one end only.
static void bytes_sent(void)
{
    if (rank == 2)
        send(8, MPI_BYTE, 1, 11);
    if (rank == 1)
        receive(4, MPI_INT, 2, 11);
}

static void bytes_received(void)
{
    MPI_Request request;
    if (rank == 0)
        send(2, MPI_DOUBLE, 3, 12);
    if (rank == 3) {
        int index;
        MPI_Irecv(in, 64, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &request);
        MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE);
    }
}

static void bytes_long(void)
{
    if (rank == 3)
        MPI_Ssend(many, MANY, MPI_DOUBLE, 0, 13, world);
    if (rank == 0)
        MPI_Recv(many, MANY * 8, MPI_BYTE, 3, 13, world, MPI_STATUS_IGNORE);
}

// Messages that are never received.
static void unreceived_short(void)
{
    if (rank == 0)
        send(2, MPI_INT, 2, 14);
}

static void unreceived_on_copy(void)
{
    MPI_Comm copy;
    MPI_Comm_dup(world, &copy);
    if (rank == 3)
        for (int i = 0; i < 5; i++)
            MPI_Send(out, 3, MPI_INT, 1, 15, copy);
    if (rank == 1)
        for (int i = 0; i < 3; i++)
            MPI_Recv(in, 3, MPI_INT, MPI_ANY_SOURCE, 15, copy, MPI_STATUS_IGNORE);
    MPI_Comm_free(&copy);
}

static void unreceived_nonblocking(void)
{
    MPI_Request requests[2];
    if (rank == 1) {
        MPI_Isend(out, 1, MPI_INT, 2, 16, world, &requests[0]);
        MPI_Isend(out, 1, MPI_DOUBLE, 2, 17, world, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    if (rank == 2)
        receive(1, MPI_INT, 1, 16);
}

static void unreceived_matched(void)
{
    MPI_Message message;
    if (rank == 1)
        send(5, MPI_INT, 2, 18);
    if (rank == 2)
        MPI_Mprobe(1, 18, world, &message, MPI_STATUS_IGNORE);
}

// Accesses to a window of another node.
static void windows(void)
{
    MPI_Win window;
    int x = 5;
    MPI_Win_create(in, sizeof in, sizeof *in, MPI_INFO_NULL, world, &window);
    MPI_Win_fence(0, window);
    if (rank == 0) {
        MPI_Put(&x, 1, MPI_INT, 2, 0, 1, MPI_INT, window);
        x = 6;
    }
    MPI_Win_fence(0, window);
    if (rank == 1)
        MPI_Get(many, 2, MPI_FLOAT, 3, 0, 2, MPI_INT, window);
    MPI_Win_fence(0, window);
    if (rank < 2)
        MPI_Put(&rank, 1, MPI_INT, 3, 7, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

// Nothing is wrong.
static void right_windows(void)
{
    MPI_Win window;
    int far = (rank + 2) % 4, got = -1;
    in[0] = in[1] = rank + 5;
    MPI_Win_create(in, sizeof in, sizeof *in, MPI_INFO_NULL, world, &window);
    MPI_Win_fence(0, window);
    MPI_Get(&got, 1, MPI_INT, far, 0, 1, MPI_INT, window);
    MPI_Put(&rank, 1, MPI_INT, far, 2, 1, MPI_INT, window);
    MPI_Accumulate(&rank, 1, MPI_INT, 3, 3, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    MPI_Put(&got, 1, MPI_INT, far, 2, 1, MPI_INT, window);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < 3; i++) {
        MPI_Get(&got, 1, MPI_INT, far, 1, 1, MPI_INT, window);
        MPI_Win_flush(far, window);
        got++;
        MPI_Put(&got, 1, MPI_INT, far, 4, 1, MPI_INT, window);
        MPI_Win_flush_local(far, window);
        got = i;
        MPI_Win_flush_all(window);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

static void right_ring(void)
{
    for (int i = 0; i < 50; i++) {
        int next = (rank + 1) % 4, before = (rank + 3) % 4;
        MPI_Sendrecv(out, i % 7, MPI_INT, next, 1, in, 16, MPI_INT, before, MPI_ANY_TAG, world, MPI_STATUS_IGNORE);
        MPI_Sendrecv_replace(out, 2, MPI_DOUBLE, next, 2, before, 2, world, MPI_STATUS_IGNORE);
    }
}

// Two receives for the same messages, whose ends are waited for in the other order.
static void right_open(void)
{
    MPI_Request requests[3];
    MPI_Status status;
    if (rank == 0) {
        MPI_Irecv(in, 1, MPI_FLOAT, MPI_ANY_SOURCE, 3, world, &requests[0]);
        MPI_Irecv(in + 1, 2, MPI_INT, 2, MPI_ANY_TAG, world, &requests[1]);
        MPI_Irecv(in + 3, 1, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &requests[2]);
        MPI_Barrier(world);
        MPI_Wait(&requests[2], &status);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    } else {
        MPI_Barrier(world);
    }
    if (rank == 2) {
        send(1, MPI_FLOAT, 0, 3);
        send(2, MPI_INT, 0, 3);
        send(1, MPI_DOUBLE, 0, 3);
    }
}

static void right_types(void)
{
    MPI_Datatype two = pair(MPI_INT, MPI_FLOAT), ints;
    char packed[64];
    int place = 0, length;
    MPI_Status status;
    MPI_Type_contiguous(3, MPI_INT, &ints);
    MPI_Type_commit(&ints);
    if (rank == 1) {
        send(1, MPI_INT, 2, 4);
        send(6, MPI_INT, 2, 5);
        send(0, MPI_DOUBLE, 2, 6);
        send(8, MPI_BYTE, 2, 7);
        MPI_Pack(out, 2, MPI_INT, packed, 64, &place, world);
        MPI_Send(packed, place, MPI_PACKED, 2, 8, world);
        MPI_Send(many, MANY, MPI_DOUBLE, 2, 9, world);
    }
    if (rank == 2) {
        // The first part of an element.
        receive(2, two, 1, 4);
        receive(4, ints, MPI_ANY_SOURCE, 5);
        receive(1, MPI_INT, 1, 6);
        MPI_Probe(1, 7, world, &status);
        MPI_Get_count(&status, MPI_BYTE, &length);
        receive(length, MPI_BYTE, 1, 7);
        receive(2, MPI_INT, 1, 8);
        MPI_Recv(many, MANY, MPI_DOUBLE, 1, 9, world, &status);
    }
    MPI_Type_free(&two);
    MPI_Type_free(&ints);
}

static void right_matched(void)
{
    MPI_Message message, second;
    MPI_Request request;
    MPI_Status status;
    if (rank != 3) {
        send(rank + 1, MPI_INT, 3, 10);
        send(1, MPI_DOUBLE, 3, 11);
        return;
    }
    for (int i = 0; i < 3; i++) {
        int flag = 0, count;
        MPI_Mprobe(MPI_ANY_SOURCE, 10, world, &message, &status);
        while (!flag)
            MPI_Improbe(status.MPI_SOURCE, 11, world, &flag, &second, MPI_STATUS_IGNORE);
        MPI_Get_count(&status, MPI_INT, &count);
        MPI_Imrecv(many, 1, MPI_DOUBLE, &second, &request);
        MPI_Mrecv(in, count, MPI_INT, &message, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

// Receives that are cancelled, messages through a buffer, and a request that somebody else completes.
static void right_rest(void)
{
    MPI_Request request, requests[2];
    static char room[1000];
    void *given;
    int length, done = 0, indexes[2], count;
    if (rank == 0) {
        MPI_Irecv(in, 1, MPI_FLOAT, 3, 12, world, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(world);
    if (rank == 3) {
        MPI_Buffer_attach(room, sizeof room);
        MPI_Bsend(out, 2, MPI_INT, 0, 12, world);
        MPI_Buffer_detach(&given, &length);
        MPI_Isend(out, 1, MPI_INT, 0, 13, world, &request);
        MPI_Request_free(&request);
    }
    if (rank == 0) {
        MPI_Irecv(in, 2, MPI_INT, 3, 12, world, &requests[0]);
        MPI_Irecv(in + 2, 1, MPI_INT, MPI_ANY_SOURCE, 13, world, &requests[1]);
        while (done < 2) {
            MPI_Waitsome(2, requests, &count, indexes, MPI_STATUSES_IGNORE);
            done += count;
        }
    }
}

static void right_groups(void)
{
    MPI_Comm half, between;
    int node = rank / 2, value = rank;
    MPI_Comm_split(world, node, 0, &half);
    MPI_Intercomm_create(half, 0, world, 2 - 2 * node, 14, &between);
    MPI_Sendrecv(&value, 1, MPI_INT, rank % 2, 15, in, 1, MPI_INT, rank % 2, 15, between, MPI_STATUS_IGNORE);
    if (rank == 0)
        MPI_Send(many, 1, MPI_DOUBLE, 1, 15, between);
    if (rank == 3)
        MPI_Recv(many, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 15, between, MPI_STATUS_IGNORE);
    if (rank == 2)
        MPI_Send(out, 1, MPI_FLOAT, 1, 15, between);
    if (rank == 1)
        MPI_Recv(in, 1, MPI_FLOAT, 0, 15, between, MPI_STATUS_IGNORE);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

static void (*const wrong[])(void) = {
    types_short,      types_long,         types_any,     types_persistent, types_struct, types_matched,
    types_partitions, types_exchanged,    types_second,  bytes_sent,       bytes_received, bytes_long,
    unreceived_short, unreceived_on_copy, unreceived_nonblocking, unreceived_matched,
    windows,
};

static void (*const right[])(void) = {right_ring, right_open, right_types, right_matched, right_rest, right_groups,
                                     right_windows};

int main(int argc, char **argv)
{
    int is_right = argc > 1 && !strcmp(argv[1], "right");
    size_t count = is_right ? sizeof right / sizeof *right : sizeof wrong / sizeof *wrong;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    for (size_t i = 0; i < count; i++) {
        (is_right ? right : wrong)[i]();
        MPI_Barrier(world);
    }
    MPI_Comm_free(&world);
    MPI_Finalize();
    return 0;
}
