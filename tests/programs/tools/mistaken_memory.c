// As mistakes.c, of memory: mistaken_memory MODE, with 3 ranks. Tests: check/.
#include <mpi.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "modes.h"

static int rank, size;

static int table[10];

// Allocated where the compiler does not see how much.
__attribute__((noinline)) static void *block(size_t bytes)
{
    void *volatile made = calloc(1, bytes);
    return made;
}

__attribute__((noinline)) static void drop(void *memory)
{
    void *volatile dropped = memory;
    free(dropped);
}

static void send(const void *data, int count, MPI_Datatype type, int to)
{
    MPI_Send(data, count, type, to, 0, MPI_COMM_WORLD);
}

static void receive(void *data, int count, MPI_Datatype type, int from)
{
    MPI_Recv(data, count, type, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Buffers that are too short.
static void one_more(void)
{
    double *data = block(100 * sizeof *data), room[101];
    if (rank == 0)
        send(data, 101, MPI_DOUBLE, 1);
    if (rank == 1)
        receive(room, 101, MPI_DOUBLE, 0);
    drop(data);
}

static void end_of_row(void)
{
    int *data = block(8 * sizeof *data), room[6];
    if (rank == 1)
        receive(data + 4, 6, MPI_INT, 0);
    if (rank == 0)
        send(memset(room, 0, sizeof room), 4, MPI_INT, 1);
    drop(data);
}

static void last_column(void)
{
    // Four rows of four, of which the block has three.
    int *data = block(12 * sizeof *data), room[4];
    MPI_Datatype column;
    MPI_Type_vector(4, 1, 4, MPI_INT, &column);
    MPI_Type_commit(&column);
    if (rank == 0)
        send(data, 1, column, 1);
    if (rank == 1)
        receive(room, 4, MPI_INT, 0);
    MPI_Type_free(&column);
    drop(data);
}

static void short_table(void)
{
    MPI_Request request;
    MPI_Ibcast(table, 12, MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void short_gather(void)
{
    int *all = rank ? NULL : block(2 * sizeof *all);
    MPI_Gather(&rank, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    drop(all);
}

static void short_alloc_mem(void)
{
    long *data, room[9] = {0};
    MPI_Alloc_mem(8 * sizeof *data, MPI_INFO_NULL, &data);
    if (rank == 2)
        receive(data, 9, MPI_LONG, 1);
    if (rank == 1)
        send(room, 8, MPI_LONG, 2);
    MPI_Free_mem(data);
}

static void short_window(void)
{
    MPI_Win window;
    int *data = block(64);
    MPI_Win_create(data, 80, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_free(&window);
    drop(data);
}

// Memory that is gone.
static void freed_before(void)
{
    char *data = block(1000), room[8];
    drop(data);
    if (rank == 0)
        send(data + 500, 8, MPI_CHAR, 1);
    if (rank == 1)
        receive(room, 8, MPI_CHAR, 0);
}

static void freed_receive(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int *data = block(40), out = 1;
    if (rank == 1)
        MPI_Irecv(data, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
    drop(data);
    if (rank == 0)
        send(&out, 1, MPI_INT, 1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void moved_persistent(void)
{
    MPI_Request request;
    long *data = block(100);
    MPI_Send_init(data, 4, MPI_LONG, MPI_PROC_NULL, 0, MPI_COMM_SELF, &request);
    MPI_Request_free(&request);
    MPI_Send_init(data, 4, MPI_LONG, 0, 0, MPI_COMM_SELF, &request);
    MPI_Start(&request);
    long *moved = realloc(data, 1 << 20), in[4];
    MPI_Recv(in, 4, MPI_LONG, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    drop(moved);
}

static void freed_collective(void)
{
    MPI_Request request;
    int *sum = block(sizeof *sum);
    MPI_Iallreduce(&rank, sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    drop(sum);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static void begin_receive(MPI_Request *request)
{
    volatile int in[50];
    MPI_Irecv((void *)in, 50, MPI_INT, 0, 0, MPI_COMM_WORLD, request);
}

static void returned_receive(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    static int out[50];
    if (rank == 2)
        begin_receive(&request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Send(out, 0, MPI_INT, 2, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static void begin_sends(MPI_Request *requests)
{
    volatile double out[2][20] = {{0}};
    for (int i = 0; i < 2; i++)
        MPI_Issend((void *)out[i], 20, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, &requests[i]);
}

static void returned_sends(void)
{
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    static double in[20];
    if (rank == 0)
        begin_sends(requests);
    for (int i = 0; rank == 1 && i < 2; i++)
        receive(in, 20, MPI_DOUBLE, 0);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

__attribute__((noinline)) static void begin_sum(MPI_Request *request)
{
    volatile int in = rank;
    static int out;
    MPI_Iallreduce((void *)&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, request);
}

static void returned_sum(void)
{
    MPI_Request request;
    begin_sum(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void freed_window(void)
{
    MPI_Win window;
    int *data = block(64), one = 1;
    MPI_Win_create(data, 64, sizeof one, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    if (rank == 1)
        drop(data);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    if (rank != 1)
        drop(data);
}

static void freed_target(void)
{
    MPI_Win window;
    int *data = block(4000), in;
    MPI_Win_create(data, 4000, sizeof in, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    if (rank == 0)
        drop(data);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 2) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        MPI_Get(&in, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
        MPI_Win_unlock(0, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    // What the memory is now used for is no reason to think that it is the window's.
    int *other = block(4000);
    MPI_Win_free(&window);
    drop(other);
    if (rank)
        drop(data);
}

// Two windows of the same memory.
static void same_window(void)
{
    MPI_Win one, other;
    MPI_Win_create(table, sizeof table, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &one);
    MPI_Win_create(table, sizeof table, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &other);
    MPI_Win_free(&one);
    MPI_Win_free(&other);
}

static void windows_meet(void)
{
    MPI_Win halves[2];
    char *data = block(100);
    for (int i = 0; i < 2; i++)
        MPI_Win_create(data + 40 * i, 60, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &halves[i]);
    MPI_Win_free(&halves[1]);
    MPI_Win_free(&halves[0]);
    drop(data);
}

static void window_in_window(void)
{
    MPI_Win outer, inner;
    MPI_Win_create(table, sizeof table, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &outer);
    MPI_Win_create(&table[rank], rank == 1 ? 4 : 0, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &inner);
    MPI_Win_free(&inner);
    MPI_Win_free(&outer);
}

// Where nothing is mapped.
static void *nowhere(void)
{
    void *volatile place = (void *)0x20000;
    return place;
}

static void unmapped_send(void)
{
    int in[4];
    if (rank == 0)
        send(nowhere(), 4, MPI_INT, 1);
    if (rank == 1)
        receive(in, 4, MPI_INT, 0);
}

static void unmapped_receive(void)
{
    if (rank == 0)
        send(table, 10, MPI_INT, 1);
    if (rank == 1)
        receive(nowhere(), 10, MPI_INT, 0);
}

static void unmapped_window(void)
{
    MPI_Win window;
    MPI_Win_create(nowhere(), 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_free(&window);
}

// Counts that differ by member.
static void short_gatherv(void)
{
    int *all = rank ? NULL : block(5 * sizeof *all), counts[3] = {1, 2, 3}, places[3] = {0, 1, 3}, out[3] = {0};
    MPI_Gatherv(out, rank + 1, MPI_INT, all, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
    drop(all);
}

static void short_alltoallv(void)
{
    char *in = block(3), *out = block(2);
    int counts[3] = {1, 1, 1}, places[3] = {0, 1, 2};
    MPI_Request request;
    MPI_Ialltoallv(out, counts, places, MPI_CHAR, in, counts, places, MPI_CHAR, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    drop(in);
    drop(out);
}

// Buffers of calls that have no message.
static void short_pack(void)
{
    char room[64];
    int *data = block(2 * sizeof *data), place = 0;
    MPI_Pack(data, 3, MPI_INT, room, sizeof room, &place, MPI_COMM_WORLD);
    drop(data);
}

static void short_unpack(void)
{
    char room[16] = {0};
    int *data = block(3 * sizeof *data), place = 0;
    MPI_Unpack(room, sizeof room, &place, data, 4, MPI_INT, MPI_COMM_WORLD);
    drop(data);
}

static void short_reduce_local(void)
{
    int data[5] = {0}, *sum = block(4 * sizeof *sum);
    MPI_Reduce_local(data, sum, 5, MPI_INT, MPI_SUM);
    drop(sum);
}

static MPI_File open_own(void)
{
    char name[32];
    MPI_File file;
    snprintf(name, sizeof name, "own.%d", rank);
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    MPI_File_open(MPI_COMM_SELF, name, mode, MPI_INFO_NULL, &file);
    return file;
}

static void short_file(void)
{
    MPI_File file = open_own();
    char *data = block(8);
    MPI_File_write_at_all(file, 0, data, 9, MPI_CHAR, MPI_STATUS_IGNORE);
    drop(data);
    MPI_File_close(&file);
}

static void pack_pending(void)
{
    int data[2] = {0}, place = 0;
    char room[64];
    MPI_Request request;
    MPI_Irecv(data, 2, MPI_INT, rank, 0, MPI_COMM_WORLD, &request);
    MPI_Pack(data + 1, 1, MPI_INT, room, sizeof room, &place, MPI_COMM_WORLD);
    MPI_Send(table, 2, MPI_INT, rank, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// Blocks that are just long enough, halves of one buffer, and a pending send that is read.
static void right_local(void)
{
    char *room = block(12);
    int *data = block(4 * sizeof *data), place = 0;
    MPI_Request requests[2];
    MPI_Irecv(data + 2, 2, MPI_INT, rank, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(data, 2, MPI_INT, rank, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Pack(data, 2, MPI_INT, room, 12, &place, MPI_COMM_WORLD);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    place = 0;
    MPI_Unpack(room, 12, &place, data + 2, 2, MPI_INT, MPI_COMM_WORLD);
    MPI_Reduce_local(data, data + 2, 2, MPI_INT, MPI_SUM);
    MPI_File file = open_own();
    MPI_File_write(file, data, 4, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_at(file, 0, data, 4, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_write(file, NULL, 0, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    drop(data);
    drop(room);
}

static void right_parts(void)
{
    double *in = block(6 * sizeof *in), *out = block(6 * sizeof *out);
    int counts[3] = {1, 2, 3}, places[3] = {5, 3, 0}, none[3] = {0, 0, 0}, far[3] = {0, 1000, 2000};
    MPI_Allgatherv(out, rank + 1, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Scatterv(out, counts, places, MPI_DOUBLE, in, rank + 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    MPI_Alltoallv(out, none, far, MPI_DOUBLE, in, none, far, MPI_DOUBLE, MPI_COMM_WORLD);
    drop(in);
    drop(out);
}

// Nothing wrong.
static void right_blocks(void)
{
    int next = (rank + 1) % size, last = (rank + size - 1) % size, *data = NULL;
    for (int count = 1; count < 2000; count = 2 * count + 1) {
        data = realloc(data, 2 * count * sizeof *data);
        memset(data, rank, 2 * count * sizeof *data);
        MPI_Request requests[2];
        MPI_Irecv(data + count, count, MPI_INT, last, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(data, count, MPI_INT, next, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Datatype column;
    MPI_Type_vector(4, 1, 4, MPI_INT, &column);
    MPI_Type_commit(&column);
    int *square = block(16 * sizeof *square);
    MPI_Sendrecv(square + 3, 1, column, next, 1, square, 1, column, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&column);
    drop(data);
    drop(square);
    void *ours = NULL;
    if (posix_memalign(&ours, 4096, 5000) == 0)
        MPI_Bcast(ours, 5000, MPI_BYTE, 0, MPI_COMM_WORLD);
    drop(ours);
}

static void right_places(void)
{
    // Stacks, objects, mappings, and addresses in the type that lead from one to another.
    int own[5] = {0}, *block_of_mpi;
    char *mapping = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MPI_Bcast(mapping + 4000, 4192, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Bcast(table, 10, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(own, 5, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Alloc_mem(400, MPI_INFO_NULL, &block_of_mpi);
    memset(block_of_mpi, 0, 400);
    MPI_Bcast(block_of_mpi + 50, 50, MPI_INT, 0, MPI_COMM_WORLD);
    int *first = block(8), *second = block(8), lengths[3] = {2, 2, 10};
    MPI_Aint places[3];
    MPI_Get_address(first, &places[0]);
    MPI_Get_address(second, &places[1]);
    MPI_Get_address(table, &places[2]);
    MPI_Datatype all;
    MPI_Type_create_hindexed(3, lengths, places, MPI_INT, &all);
    MPI_Type_commit(&all);
    MPI_Bcast(MPI_BOTTOM, 1, all, 0, MPI_COMM_WORLD);
    MPI_Type_free(&all);
    MPI_Free_mem(block_of_mpi);
    munmap(mapping, 8192);
    drop(first);
    drop(second);
    MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
}

static void right_lives(void)
{
    MPI_Request request;
    MPI_Win window;
    for (int i = 0; i < 3; i++) {
        int *in = block(4), *data = block(64);
        MPI_Irecv(in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
        MPI_Send(&i, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        drop(in);
        MPI_Win_create(data, 64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        MPI_Win_fence(0, window);
        drop(block(64));
        MPI_Win_fence(0, window);
        MPI_Win_free(&window);
        drop(data);
    }
}

static const struct mode modes[] = {
    MODE(one_more), MODE(end_of_row), MODE(last_column), MODE(short_table), MODE(short_gather),
    MODE(short_alloc_mem), MODE(short_window), MODE(freed_before), MODE(freed_receive),
    MODE(moved_persistent), MODE(freed_collective), MODE(returned_sends), MODE(returned_receive),
    MODE(returned_sum), MODE(freed_window), MODE(freed_target), MODE(same_window), MODE(windows_meet),
    MODE(window_in_window), MODE(unmapped_send),
    MODE(unmapped_receive), MODE(unmapped_window), MODE(short_gatherv),
    MODE(short_pack), MODE(short_unpack), MODE(short_reduce_local), MODE(short_file), MODE(pack_pending),
    MODE(right_local),
    MODE(short_alltoallv), MODE(right_parts), MODE(right_blocks), MODE(right_places), MODE(right_lives),
};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    return run(modes, sizeof modes / sizeof *modes, argc > 1 ? argv[1] : "", &rank, &size);
}
