// Buffers of which MPI uses a part, or nothing: neighbours' parts, the first member of an exclusive scan, the origin of
// an operation that changes nothing, and the holes of a datatype.
//# ranks: 2 4
#include "check.h"
#include <sys/mman.h>
#include <unistd.h>

static void of_neighbours(void) {
    int dims[1] = {size}, periods[1] = {1}, out[2] = {rank, rank + 100};
    int *in = malloc(2 * sizeof *in);
    MPI_Comm ring;
    MPI_Request request;
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring);
    MPI_Neighbor_allgather_init(out, 1, MPI_INT, in, 1, MPI_INT, ring, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    CHECK_EQ(in[0], (rank + size - 1) % size);
    CHECK_EQ(in[1], (rank + 1) % size);
    MPI_Neighbor_alltoall_init(out, 1, MPI_INT, in, 1, MPI_INT, ring, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    CHECK_EQ(in[0] % 100, (rank + size - 1) % size);
    MPI_Comm_free(&ring);
    free(in);
}

static void of_scans(void) {
    int out[100], *in = malloc(rank ? sizeof out : sizeof *in);
    MPI_Request request;
    for (int i = 0; i < 100; i++)
        out[i] = i;
    MPI_Exscan(out, in, 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank) CHECK_EQ(in[99], 99 * rank);
    MPI_Iexscan(out, in, 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(in);
}

static void of_windows(void) {
    int *mine, result[100];
    char *origin = malloc(1);
    MPI_Win win;
    MPI_Win_allocate(sizeof result, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
    mine[99] = rank;
    MPI_Win_fence(0, win);
    MPI_Get_accumulate(origin, 100, MPI_INT, result, 100, MPI_INT, (rank + 1) % size, 0, 100, MPI_INT, MPI_NO_OP, win);
    MPI_Win_fence(0, win);
    CHECK_EQ(result[99], (rank + 1) % size);
    MPI_Win_free(&win);
    free(origin);
}

// A page between the parts of a message goes while it is sent.
static void of_holes(void) {
    long page = sysconf(_SC_PAGESIZE);
    int lengths[2] = {1, 1}, in[2] = {0, 0};
    MPI_Aint places[2] = {0, 2 * page};
    MPI_Datatype ends;
    MPI_Request request;
    MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &ends);
    MPI_Type_commit(&ends);
    char *pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    *(int *)pages = 5;
    *(int *)(pages + 2 * page) = 7;
    MPI_Issend(pages, 1, ends, rank, 1, MPI_COMM_WORLD, &request);
    CHECK_EQ(munmap(pages + page, page), 0);
    MPI_Recv(in, 2, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQ(in[0], 5);
    CHECK_EQ(in[1], 7);
    munmap(pages, page);
    munmap(pages + 2 * page, page);
    MPI_Type_free(&ends);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    of_neighbours();
    of_scans();
    of_windows();
    of_holes();
    return finish();
}
