// MPI_MODE_NOCHECK takes no lock: OpenCoarrays waits for an event inside MPI_Win_lock_all with it, and who posts the
// event takes an exclusive lock.
//# ranks: 1 2 4
#include "check.h"

// All the others add to rank 0's counter under exclusive locks, while it waits in an epoch of its own.
static void waits_inside(MPI_Win win, volatile int *mine) {
    int one = 1;
    if (rank == 0) {
        MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
        MPI_Barrier(MPI_COMM_WORLD);
        while (*mine < size - 1) MPI_Win_sync(win);
        MPI_Win_unlock_all(win);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// Operations, flushes and ends of epochs with it are those of other epochs.
static void operations(MPI_Win win, int *mine) {
    int right = (rank + 1) % size, left = (rank + size - 1) % size, one = 1, got = -1, old;
    for (int round = 1; round <= 50; round++) {
        int value = rank * 1000 + round;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, MPI_MODE_NOCHECK, win);
        MPI_Put(&value, 1, MPI_INT, right, 1, 1, MPI_INT, win);
        MPI_Win_unlock(right, win);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_EQ(mine[1], left * 1000 + round);
        MPI_Win_lock(MPI_LOCK_SHARED, right, MPI_MODE_NOCHECK, win);
        MPI_Get(&got, 1, MPI_INT, right, 1, 1, MPI_INT, win);
        MPI_Win_flush(right, win);
        CHECK_EQ(got, value);
        MPI_Win_unlock(right, win);
        MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
        for (int to = 0; to < size; to++) MPI_Accumulate(&one, 1, MPI_INT, to, 2, 1, MPI_INT, MPI_SUM, win);
        MPI_Fetch_and_op(&one, &old, MPI_INT, 0, 3, MPI_SUM, win);
        MPI_Win_unlock_all(win);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_EQ(mine[2], round * size);
        if (rank == 0) CHECK_EQ(mine[3], round * size);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    int *mine;
    MPI_Win win;
    MPI_Win_allocate(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
    memset(mine, 0, 4 * sizeof(int));
    MPI_Barrier(MPI_COMM_WORLD);
    waits_inside(win, mine);
    operations(win, mine);
    MPI_Win_free(&win);
    return finish();
}
