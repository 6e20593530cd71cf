// Misuse of windows is reported with its class, and changes nothing.
//# ranks: 2
#include "check.h"

static MPI_Win win;
static int heard;
static void on_error(MPI_Win *which, int *code, ...) {
    CHECK(*which == win && *code != MPI_SUCCESS);
    heard++;
}

// MPI_NO_OP is for accumulates that fetch.
static void no_operation(int other) {
    int value = 3, was;
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK_EQ(class_of(MPI_Raccumulate(&value, 1, MPI_INT, other, 0, 1, MPI_INT, MPI_NO_OP, win, &request)), MPI_ERR_OP);
    CHECK_EQ(MPI_Fetch_and_op(NULL, &was, MPI_INT, other, 0, MPI_NO_OP, win), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_flush(other, win), MPI_SUCCESS);
}

// More elements than bytes can be counted of: 2^62 + 1 of 4 bytes are not one.
static void beyond_counting(int other) {
#ifndef OPEN_MPI
    int value = 3, was = 5;
    const MPI_Count many = ((MPI_Count)1 << 62) + 1;
    CHECK_EQ(class_of(MPI_Put_c(&value, many, MPI_INT, other, 0, 1, MPI_INT, win)), MPI_ERR_COUNT);
    CHECK_EQ(class_of(MPI_Accumulate_c(&value, many, MPI_INT, other, 0, 1, MPI_INT, MPI_SUM, win)), MPI_ERR_COUNT);
    CHECK_EQ(class_of(MPI_Get_c(&was, 1, MPI_INT, other, 0, many, MPI_INT, win)), MPI_ERR_COUNT);
    CHECK_EQ(was, 5);
#else
    (void)other;
#endif
}

// Promises that do not go with the call, and bits that mean nothing.
static void promises(MPI_Group group, int other) {
    int of_lock[] = {MPI_MODE_NOPUT, MPI_MODE_NOPRECEDE, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE, 1 << 30};
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(class_of(MPI_Win_lock(MPI_LOCK_SHARED, other, of_lock[i], win)), MPI_ERR_ASSERT);
        CHECK_EQ(class_of(MPI_Win_lock_all(of_lock[i], win)), MPI_ERR_ASSERT);
        CHECK_EQ(class_of(MPI_Win_start(group, of_lock[i], win)), MPI_ERR_ASSERT);
    }
    CHECK_EQ(class_of(MPI_Win_post(group, MPI_MODE_NOSUCCEED, win)), MPI_ERR_ASSERT);
    CHECK_EQ(class_of(MPI_Win_post(group, 1 << 30, win)), MPI_ERR_ASSERT);
    CHECK_EQ(class_of(MPI_Win_fence(MPI_MODE_NOCHECK, win)), MPI_ERR_ASSERT);
    CHECK_EQ(class_of(MPI_Win_fence(1 << 30, win)), MPI_ERR_ASSERT);
    // All that do, in epochs of nobody.
    CHECK_EQ(MPI_Win_start(MPI_GROUP_EMPTY, MPI_MODE_NOCHECK, win), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_complete(win), MPI_SUCCESS);
    int of_post = MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT;
    CHECK_EQ(MPI_Win_post(MPI_GROUP_EMPTY, of_post, win), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_wait(win), MPI_SUCCESS);
    int of_fence = MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
    CHECK_EQ(MPI_Win_fence(of_fence, win), MPI_SUCCESS);
}

// Memory without bytes is attached anywhere, and detached behind what begins there too.
static void no_bytes(void) {
    static int room[8];
    CHECK_EQ(MPI_Win_attach(win, &room[4], 0), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_attach(win, room, 0), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_attach(win, room, sizeof room), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_attach(win, &room[2], 0), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_Win_attach(win, &room[2], 1)), MPI_ERR_RMA_ATTACH);
    CHECK_EQ(MPI_Win_detach(win, room), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_attach(win, &room[2], 1), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_detach(win, &room[2]), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_detach(win, &room[2]), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_Win_detach(win, &room[2])), MPI_ERR_RMA_ATTACH);
    CHECK_EQ(MPI_Win_detach(win, room), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_detach(win, &room[4]), MPI_SUCCESS);
}

static void refused_by_all(int code, int why) {
    int found = class_of(code);
    // Members of several nodes share no memory, whatever they ask for.
    CHECK(found == why || found == MPI_ERR_RMA_SHARED);
}

// What one member asks for is wrong: all hear so, and none waits.
static void wrong_at_one(void) {
    MPI_Win none;
    MPI_Info hints;
    int *memory;
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "mpi_minimum_memory_alignment", rank == 1 ? "48" : "64");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Aint size = rank == 1 ? -1 : 8;
    int unit = rank == 0 ? 0 : 4;
    refused_by_all(MPI_Win_allocate(size, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &none), MPI_ERR_SIZE);
    refused_by_all(MPI_Win_allocate_shared(size, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &none), MPI_ERR_SIZE);
    refused_by_all(MPI_Win_create(&size, size, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &none), MPI_ERR_SIZE);
    refused_by_all(MPI_Win_allocate(8, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &none), MPI_ERR_DISP);
    refused_by_all(MPI_Win_allocate_shared(8, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &none), MPI_ERR_DISP);
    refused_by_all(MPI_Win_allocate(8, 4, hints, MPI_COMM_WORLD, &memory, &none), MPI_ERR_INFO_VALUE);
    refused_by_all(MPI_Win_allocate_shared(8, 4, hints, MPI_COMM_WORLD, &memory, &none), MPI_ERR_INFO_VALUE);
    refused_by_all(MPI_Win_create_dynamic(hints, MPI_COMM_WORLD, &none), MPI_ERR_INFO_VALUE);
    MPI_Info_free(&hints);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    int *memory, value = 3, other = 1 - rank, flag;
    MPI_Group group;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    wrong_at_one();
    MPI_Win_allocate(10 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    promises(group, other);
    // No epoch, and synchronisation that ends none.
    CHECK_EQ(class_of(MPI_Put(&value, 1, MPI_INT, other, 0, 1, MPI_INT, win)), MPI_ERR_RMA_SYNC);
    CHECK_EQ(class_of(MPI_Win_unlock(other, win)), MPI_ERR_RMA_SYNC);
    CHECK_EQ(class_of(MPI_Win_complete(win)), MPI_ERR_RMA_SYNC);
    CHECK_EQ(class_of(MPI_Win_wait(win)), MPI_ERR_RMA_SYNC);
    CHECK_EQ(class_of(MPI_Win_test(win, &flag)), MPI_ERR_RMA_SYNC);
    CHECK_EQ(class_of(MPI_Win_unlock_all(win)), MPI_ERR_RMA_SYNC);
    CHECK_EQ(class_of(MPI_Win_flush(other, win)), MPI_ERR_RMA_SYNC);
    CHECK_EQ(class_of(MPI_Win_flush_all(win)), MPI_ERR_RMA_SYNC);
    // Outside of the window, on both sides of it.
    MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win);
    CHECK_EQ(class_of(MPI_Put(&value, 1, MPI_INT, other, 10, 1, MPI_INT, win)), MPI_ERR_RMA_RANGE);
    CHECK_EQ(class_of(MPI_Put(&value, 1, MPI_INT, other, -1, 1, MPI_INT, win)), MPI_ERR_RMA_RANGE);
    CHECK_EQ(class_of(MPI_Get(&value, 2, MPI_INT, other, 9, 2, MPI_INT, win)), MPI_ERR_RMA_RANGE);
    CHECK_EQ(class_of(MPI_Put(&value, 1, MPI_INT, rank, 0, 1, MPI_INT, win)), MPI_ERR_RMA_SYNC);
    CHECK_EQ(class_of(MPI_Put(&value, 1, MPI_INT, 2, 0, 1, MPI_INT, win)), MPI_ERR_RANK);
    // Epochs that exclude each other.
    CHECK_EQ(class_of(MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win)), MPI_ERR_RMA_SYNC);
    CHECK_EQ(class_of(MPI_Win_lock_all(0, win)), MPI_ERR_RMA_SYNC);
    CHECK_EQ(class_of(MPI_Win_start(group, 0, win)), MPI_ERR_RMA_SYNC);
    CHECK_EQ(class_of(MPI_Win_fence(0, win)), MPI_ERR_RMA_SYNC);
    CHECK_EQ(class_of(MPI_Win_free(&win)), MPI_ERR_RMA_SYNC);
    CHECK_EQ(class_of(MPI_Win_lock(17, rank, 0, win)), MPI_ERR_LOCKTYPE);
    // Operations and types that do not go together.
    double real = 1;
    CHECK_EQ(class_of(MPI_Accumulate(&real, 1, MPI_DOUBLE, other, 0, 1, MPI_DOUBLE, MPI_BAND, win)), MPI_ERR_OP);
    CHECK_EQ(class_of(MPI_Accumulate(&real, 1, MPI_DOUBLE, other, 0, 2, MPI_INT, MPI_SUM, win)), MPI_ERR_TYPE);
    no_operation(other);
    beyond_counting(other);
    CHECK_EQ(class_of(MPI_Compare_and_swap(&real, &real, &real, MPI_DOUBLE, other, 0, win)), MPI_ERR_TYPE);
    CHECK_EQ(class_of(MPI_Win_attach(win, memory, 4)), MPI_ERR_RMA_FLAVOR);
    MPI_Win_unlock(other, win);
    // The program's own handler hears of them too.
    MPI_Errhandler handler;
    MPI_Win_create_errhandler(on_error, &handler);
    MPI_Win_set_errhandler(win, handler);
    MPI_Errhandler_free(&handler);
    MPI_Win_unlock(other, win);
    MPI_Win_call_errhandler(win, MPI_ERR_OTHER);
    CHECK_EQ(heard, 2);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 10; i++) CHECK_EQ(memory[i], 0);
    MPI_Win_free(&win);
    // Memory that is attached twice, or not at all.
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    CHECK_EQ(class_of(MPI_Win_attach(win, &value, sizeof value)), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_Win_attach(win, &value, sizeof value)), MPI_ERR_RMA_ATTACH);
    CHECK_EQ(class_of(MPI_Win_detach(win, &heard)), MPI_ERR_RMA_ATTACH);
    no_bytes();
    MPI_Aint address;
    MPI_Get_address(&heard, &address);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    CHECK_EQ(class_of(MPI_Put(&value, 1, MPI_INT, rank, address, 1, MPI_INT, win)), MPI_ERR_RMA_RANGE);
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_EQ(class_of(MPI_Win_fence(0, MPI_WIN_NULL)), MPI_ERR_WIN);
    MPI_Group_free(&group);
    return finish();
}
