// Dynamic windows: what is attached counts when the target's epoch begins, not when the origin asks; and an access may
// span regions that were attached one by one.
//# ranks: 2
//# progress: steal, none
#include "check.h"
enum { HALF = 1000 };
static MPI_Win win;
static char memory[3 * HALF], data[3 * HALF];

static MPI_Aint told_address(void) {
    MPI_Aint address;
    MPI_Get_address(memory, &address);
    MPI_Bcast(&address, 1, MPI_AINT, 1, MPI_COMM_WORLD);
    return address;
}

// The first fence ends no epoch, so the origin need not wait in it, nor in the put: only then does the target attach.
static void attach_late(void) {
    MPI_Aint address = told_address();
    CHECK_EQ(MPI_Win_fence(MPI_MODE_NOPRECEDE, win), MPI_SUCCESS);
    if (rank == 0) {
        CHECK_EQ(MPI_Win_fence(MPI_MODE_NOPRECEDE, win), MPI_SUCCESS);
        memset(data, 7, HALF);
        CHECK_EQ(MPI_Put(data, HALF, MPI_CHAR, 1, address, HALF, MPI_CHAR, win), MPI_SUCCESS);
        MPI_Send(NULL, 0, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(NULL, 0, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQ(MPI_Win_attach(win, memory, HALF), MPI_SUCCESS);
        CHECK_EQ(MPI_Win_fence(MPI_MODE_NOPRECEDE, win), MPI_SUCCESS);
    }
    CHECK_EQ(MPI_Win_fence(MPI_MODE_NOSUCCEED, win), MPI_SUCCESS);
    for (int i = 0; rank == 1 && i < HALF; i++) CHECK_EQ(memory[i], 7);
}

// Two regions side by side, and then with a third behind them that is not attached.
static void adjacent(void) {
    MPI_Aint address = told_address();
    if (rank == 1) CHECK_EQ(MPI_Win_attach(win, memory + HALF, HALF), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        memset(data, 9, sizeof data);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        CHECK_EQ(MPI_Put(data, 2 * HALF - 2, MPI_CHAR, 1, address + 1, 2 * HALF - 2, MPI_CHAR, win), MPI_SUCCESS);
        CHECK_EQ(MPI_Win_unlock(1, win), MPI_SUCCESS);
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        int at_once = MPI_Put(data, HALF + 1, MPI_CHAR, 1, address + HALF, HALF + 1, MPI_CHAR, win);
        int in_the_end = MPI_Win_unlock(1, win);
        CHECK_EQ(class_of(at_once != MPI_SUCCESS ? at_once : in_the_end), MPI_ERR_RMA_RANGE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        CHECK_EQ(memory[0], 7);
        for (int i = 1; i < 2 * HALF - 1; i++) CHECK_EQ(memory[i], 9);
        CHECK_EQ(memory[2 * HALF - 1], 0);
        CHECK_EQ(memory[2 * HALF], 0);
        CHECK_EQ(MPI_Win_detach(win, memory), MPI_SUCCESS);
        CHECK_EQ(MPI_Win_detach(win, memory + HALF), MPI_SUCCESS);
    }
}

// What was asked for before the target's epoch began and is not attached even then is reported at the epoch's end.
static void never_attached(void) {
    MPI_Aint address = told_address();
    CHECK_EQ(MPI_Win_fence(MPI_MODE_NOPRECEDE, win), MPI_SUCCESS);
    int code = MPI_SUCCESS;
    if (rank == 0) code = MPI_Put(data, 1, MPI_CHAR, 1, address, 1, MPI_CHAR, win);
    int end = MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    if (rank == 0) CHECK_EQ(class_of(code != MPI_SUCCESS ? code : end), MPI_ERR_RMA_RANGE);
    else CHECK_EQ(end, MPI_SUCCESS);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    attach_late();
    adjacent();
    never_attached();
    MPI_Win_free(&win);
    return finish();
}
