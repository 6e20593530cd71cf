// The memory of a large window is there when it is used, not before: a window of a gigabyte takes little of it, and
// what is written far inside is read by others.
//# ranks: 2
//# abi: mpich mpi5
#include "check.h"
enum { GIGABYTE = 1 << 30, MEGABYTE = 1 << 20 };

/* Megabytes of the process that are resident; ranks of a node share them. */
static long resident(void) {
    long pages = 0, all = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld %ld", &all, &pages) == 2);
    fclose(file);
    return pages * 4096 / MEGABYTE;
}

static void window(int shared) {
    MPI_Win win;
    unsigned char *memory, mine = (unsigned char)(rank + 1), got = 0;
    MPI_Aint far = GIGABYTE - 4096;
    int next = (rank + 1) % size;
    MPI_Barrier(MPI_COMM_WORLD);
    long before = resident();
    if (shared) MPI_Win_allocate_shared(GIGABYTE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    else MPI_Win_allocate(GIGABYTE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    CHECK(resident() - before < 200);
    MPI_Win_fence(0, win);
    MPI_Put(&mine, 1, MPI_BYTE, next, far, 1, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    CHECK_EQ(memory[far], (rank + size - 1) % size + 1);
    CHECK_EQ(memory[far - 1], 0);
    MPI_Get(&got, 1, MPI_BYTE, next, far, 1, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    CHECK_EQ(got, rank + 1);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(resident() - before < 200);
    MPI_Win_free(&win);
}

int main(int argc, char **argv) {
    MPI_Comm here;
    int members;
    start(&argc, &argv);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Comm_size(here, &members);
    MPI_Comm_free(&here);
    window(0);
    if (members == size) window(1);
    return finish();
}
