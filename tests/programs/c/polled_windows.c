// Ranks that outnumber CPUs pass a number around a ring and wait for it by polling: their own memory beside
// MPI_Win_sync, or a get and a flush. Calls that wait for nothing leave the others a CPU.
//# ranks: 4
//# abi: mpich mpi5
//# timeout: 60
#include "check.h"
enum { ROUNDS = 100 };

static int polled(volatile int *memory, MPI_Win win, int by_get) {
    int value;
    if (!by_get) {
        MPI_Win_sync(win);
        return *memory;
    }
    MPI_Get(&value, 1, MPI_INT, rank, 0, 1, MPI_INT, win);
    MPI_Win_flush_local(rank, win);
    return value;
}

int main(int argc, char **argv) {
    MPI_Win win;
    int *memory;
    start(&argc, &argv);
    MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_lock_all(0, win);
    *memory = 0;
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 1; round <= 2 * ROUNDS; round++) {
        // The first one begins each round, and ends it when the number has come back.
        for (int step = 0; step < 2; step++) {
            if ((step == 0) == (rank == 0)) {
                MPI_Accumulate(&round, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, MPI_REPLACE, win);
                MPI_Win_flush((rank + 1) % size, win);
            } else {
                int value;
                while ((value = polled(memory, win, round > ROUNDS)) < round) continue;
                CHECK_EQ(value, round);
            }
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    return finish();
}
