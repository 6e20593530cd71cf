// A stencil whose state is in a window: a rank dies, and its neighbour reads what it left, without a file, and goes on
// with its part. Fences and locks that would wait for the dead end with an error, and the window can be freed.
//# ranks: 4
//# abi: mpi5
//# progress: none
//# policies: listed
// Ranks that survive each other do no work for others.
//# nodes: no
// Nodes that survive each other have no such windows, and start no more ranks.
//# settings: COHORT_ON_FAILURE=continue
#include "check.h"
#include "survival.h"
#include <signal.h>
enum { CELLS = 5000, STEPS = 6, LAST_STEP = 3, VICTIM = 1 };

static long cell(int owner, int step, int i) {
    return owner * 1000000L + step * 10000 + i % 1000;
}

static void fill(long *part, int owner, int step) {
    for (int i = 0; i < CELLS; i++) part[i + 1] = cell(owner, step, i);
    part[0] = step;
}

// What is left of the part that rank 1 had, by both ways.
static void take_over(MPI_Win win, int members) {
    MPI_Aint bytes;
    int unit;
    long *left, got[CELLS + 1];
    CHECK_EQ(MPI_Win_shared_query(win, VICTIM, &bytes, &unit, &left), MPI_SUCCESS);
    CHECK_EQ(bytes, (CELLS + 1) * sizeof(long));
    CHECK_EQ(MPI_Win_lock(MPI_LOCK_SHARED, VICTIM, MPI_MODE_NOCHECK, win), MPI_SUCCESS);
    CHECK_EQ(MPI_Get(got, CELLS + 1, MPI_LONG, VICTIM, 0, CELLS + 1, MPI_LONG, win), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_unlock(VICTIM, win), MPI_SUCCESS);
    CHECK_EQ(left[0], LAST_STEP);
    CHECK_EQ(memcmp(got, left, sizeof got), 0);
    for (int i = 0; i < CELLS; i++) CHECK_EQ(got[i + 1], cell(VICTIM, LAST_STEP, i));
    CHECK_EQ(members, size - 1);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Win win, locked;
    long *mine, *other, zero = 0;
    MPI_Win_allocate_shared((CELLS + 1) * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
    MPI_Win_allocate(sizeof *other, sizeof *other, MPI_INFO_NULL, MPI_COMM_WORLD, &other, &locked);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_set_errhandler(locked, MPI_ERRORS_RETURN);
    // The victim dies with a lock at rank 0.
    if (rank == VICTIM) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, locked);
    int code = MPI_SUCCESS;
    for (int step = 0; step < STEPS && code == MPI_SUCCESS; step++) {
        fill(mine, rank, step);
        if (rank == VICTIM && step == LAST_STEP) raise(SIGKILL);
        code = MPI_Win_fence(0, win);
        if (code == MPI_SUCCESS) code = MPI_Barrier(MPI_COMM_WORLD);
    }
    CHECK_EQ(class_of(code), MPIX_ERR_PROC_FAILED);
    code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, locked);
    if (code == MPI_SUCCESS) {
        // The lock may wait until it is needed.
        code = MPI_Put(&zero, 1, MPI_LONG, 0, 0, 1, MPI_LONG, locked);
        if (code == MPI_SUCCESS) code = MPI_Win_unlock(0, locked);
    }
    CHECK_EQ(class_of(code), MPIX_ERR_PROC_FAILED);
    MPI_Comm left;
    int members;
    CHECK_EQ(MPIX_Comm_shrink(MPI_COMM_WORLD, &left), MPI_SUCCESS);
    MPI_Comm_size(left, &members);
    take_over(win, members);
    CHECK_EQ(MPI_Win_free(&win), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_free(&locked), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_allocate(sizeof *other, sizeof *other, MPI_INFO_NULL, left, &other, &win), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_fence(0, win), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_free(&win), MPI_SUCCESS);
    MPI_Comm_free(&left);
    if (rank == 0) puts("passed");
    MPI_Finalize();
    return 0;
}
