// What a flush and a request say of operations that a dynamic window refuses, and which parts of a type count: what
// lies between its blocks need not be attached.
//# ranks: 2
//# progress: steal, none
#include "check.h"
enum { REGION = 100, GAP = 50 };
static MPI_Win win;
static int memory[2 * REGION + GAP], data[2 * REGION + GAP];
static MPI_Aint at(MPI_Aint base, int index) { return base + (MPI_Aint)(index * sizeof(int)); }

// A put that is refused: at once, or later.
static int refused_put(MPI_Aint base) { return MPI_Put(data, 1, MPI_INT, 1, at(base, REGION), 1, MPI_INT, win); }

static void flushes(MPI_Aint base) {
    MPI_Win_lock_all(0, win);
    for (int all = 0; all < 2; all++) {
        int at_once = refused_put(base);
        CHECK_EQ(MPI_Win_flush(0, win), MPI_SUCCESS);
        int flushed = all ? MPI_Win_flush_all(win) : MPI_Win_flush(1, win);
        CHECK_EQ(class_of(at_once != MPI_SUCCESS ? at_once : flushed), MPI_ERR_RMA_RANGE);
        CHECK_EQ(MPI_Put(data, 1, MPI_INT, 1, base, 1, MPI_INT, win), MPI_SUCCESS);
        CHECK_EQ(all ? MPI_Win_flush(1, win) : MPI_Win_flush_all(win), MPI_SUCCESS);
    }
    CHECK_EQ(MPI_Win_unlock_all(win), MPI_SUCCESS);
    // Of what was not flushed the end of the epoch tells.
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    int at_once = refused_put(base), ended = MPI_Win_unlock(1, win);
    CHECK_EQ(class_of(at_once != MPI_SUCCESS ? at_once : ended), MPI_ERR_RMA_RANGE);
}

static void requests(MPI_Aint base) {
    MPI_Request request;
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    int at_once = MPI_Rput(data, 1, MPI_INT, 1, at(base, REGION), 1, MPI_INT, win, &request);
    int code = at_once != MPI_SUCCESS ? at_once : MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQ(class_of(code), MPI_ERR_RMA_RANGE);
    CHECK_EQ(MPI_Rget(data, 1, MPI_INT, 1, base, 1, MPI_INT, win, &request), MPI_SUCCESS);
    CHECK_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_flush(1, win), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_unlock(1, win), MPI_SUCCESS);
}

// Two blocks with the gap between them, the second of which begins so far behind the second region's begin.
static MPI_Datatype blocks(int behind) {
    int lengths[2] = {REGION, REGION}, places[2] = {0, REGION + GAP + behind};
    MPI_Datatype type;
    MPI_Type_indexed(2, lengths, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

static void across_regions(MPI_Aint base) {
    MPI_Datatype type = blocks(0), beyond = blocks(1), steps;
    // Single elements at equal distances, each in one of the regions.
    MPI_Type_vector(2, 1, REGION + GAP, MPI_INT, &steps);
    MPI_Type_commit(&steps);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    for (int i = 0; i < 2 * REGION; i++) data[i] = 1000 + i;
    CHECK_EQ(MPI_Put(data, 2 * REGION, MPI_INT, 1, base, 1, type, win), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_flush(1, win), MPI_SUCCESS);
    int ones[2] = {1, 1}, got[2 * REGION];
    CHECK_EQ(MPI_Accumulate(ones, 2, MPI_INT, 1, base, 1, steps, MPI_SUM, win), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_flush(1, win), MPI_SUCCESS);
    CHECK_EQ(MPI_Get(got, 2 * REGION, MPI_INT, 1, base, 1, type, win), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_flush(1, win), MPI_SUCCESS);
    for (int i = 0; i < 2 * REGION; i++) CHECK_EQ(got[i], 1000 + i + (i % REGION == 0));
    int at_once = MPI_Get(got, 2 * REGION, MPI_INT, 1, base, 1, beyond, win), flushed = MPI_Win_flush(1, win);
    CHECK_EQ(class_of(at_once != MPI_SUCCESS ? at_once : flushed), MPI_ERR_RMA_RANGE);
    CHECK_EQ(MPI_Win_unlock(1, win), MPI_SUCCESS);
    MPI_Type_free(&type);
    MPI_Type_free(&beyond);
    MPI_Type_free(&steps);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    if (rank == 1) {
        CHECK_EQ(MPI_Win_attach(win, memory, REGION * sizeof(int)), MPI_SUCCESS);
        CHECK_EQ(MPI_Win_attach(win, memory + REGION + GAP, REGION * sizeof(int)), MPI_SUCCESS);
    }
    MPI_Aint base;
    MPI_Get_address(memory, &base);
    MPI_Bcast(&base, 1, MPI_AINT, 1, MPI_COMM_WORLD);
    if (rank == 0) {
        flushes(base);
        requests(base);
        across_regions(base);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = REGION; rank == 1 && i < REGION + GAP; i++) CHECK_EQ(memory[i], 0);
    MPI_Win_free(&win);
    return finish();
}
