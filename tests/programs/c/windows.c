// Windows of every kind: memory, attributes, names, hints, and each operation under each synchronisation.
//# ranks: 1 2 4
//# abi: mpich, mpi5, openmpi
//# progress: steal none
#include "check.h"
#include <stdint.h>
enum { COUNT = 1000 };

static void attributes(MPI_Win win, void *base, MPI_Aint size, int unit, int flavor) {
    void *value;
    int flag;
    MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag);
    CHECK(flag && value == base);
    MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &flag);
    CHECK(flag && *(MPI_Aint *)value == size);
    MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag);
    CHECK(flag && *(int *)value == unit);
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag);
    CHECK(flag && *(int *)value == flavor);
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag);
    CHECK(flag && *(int *)value == MPI_WIN_UNIFIED);
}

// Every rank puts a block into its right neighbour and reads one from the left, by fences.
static void by_fence(MPI_Win win, int *mine) {
    int right = (rank + 1) % size, left = (rank + size - 1) % size, got[COUNT], sent[COUNT];
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    for (int i = 0; i < COUNT; i++) sent[i] = rank * COUNT + i;
    MPI_Put(sent, COUNT, MPI_INT, right, 0, COUNT, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < COUNT; i++) CHECK_EQ(mine[i], left * COUNT + i);
    MPI_Get(got, COUNT, MPI_INT, right, 0, COUNT, MPI_INT, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    for (int i = 0; i < COUNT; i++) CHECK_EQ(got[i], rank * COUNT + i);
}

// The same by general active target synchronisation: all others are targets and origins.
static void by_groups(MPI_Win win, int *mine) {
    MPI_Group all, others;
    MPI_Win_get_group(win, &all);
    MPI_Group_excl(all, 1, &rank, &others);
    for (int round = 0; round < 3; round++) {
        MPI_Win_post(others, 0, win);
        MPI_Win_start(others, 0, win);
        int value = round * 100 + rank;
        for (int to = 0; to < size; to++)
            if (to != rank) MPI_Put(&value, 1, MPI_INT, to, rank, 1, MPI_INT, win);
        MPI_Win_complete(win);
        if (round == 1) {
            int over = 0;
            while (!over) MPI_Win_test(win, &over);
        } else {
            MPI_Win_wait(win);
        }
        for (int from = 0; from < size; from++)
            if (from != rank) CHECK_EQ(mine[from], round * 100 + from);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Group_free(&others);
    MPI_Group_free(&all);
}

// Every rank adds to counters of rank 0, under locks and with all atomic operations.
static void by_locks(MPI_Win win, int *mine) {
    if (rank == 0) memset(mine, 0, COUNT * sizeof(int));
    MPI_Barrier(MPI_COMM_WORLD);
    enum { ROUNDS = 200 };
    int one = 1, old, last = -1, zero = 0;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Get(&old, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
        old++;
        MPI_Put(&old, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        MPI_Win_unlock(0, win);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Accumulate(&one, 1, MPI_INT, 0, 1, 1, MPI_INT, MPI_SUM, win);
        MPI_Fetch_and_op(&one, &old, MPI_INT, 0, 2, MPI_SUM, win);
        MPI_Win_unlock(0, win);
        CHECK(old > last);
        last = old;
    }
    // A lock made of compare-and-swap guards a plain counter.
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < ROUNDS; i++) {
        do {
            MPI_Compare_and_swap(&one, &zero, &old, MPI_INT, 0, 3, win);
            MPI_Win_flush(0, win);
        } while (old != 0);
        MPI_Get(&old, 1, MPI_INT, 0, 4, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
        old++;
        MPI_Put(&old, 1, MPI_INT, 0, 4, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
        MPI_Accumulate(&zero, 1, MPI_INT, 0, 3, 1, MPI_INT, MPI_REPLACE, win);
        MPI_Win_flush_all(win);
    }
    MPI_Request requests[2];
    MPI_Rget_accumulate(NULL, 0, MPI_INT, &old, 1, MPI_INT, 0, 3, 1, MPI_INT, MPI_NO_OP, win, &requests[0]);
    MPI_Rput(&one, 1, MPI_INT, rank, 10, 1, MPI_INT, win, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        for (int i = 0; i < 5; i++) CHECK_EQ(mine[i], i == 3 ? 0 : ROUNDS * size);
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// A column of doubles of each origin, by derived types on both sides; sums that need no machine word.
static void by_types(void) {
    enum { ROWS = 8, COLUMNS = 5 };
    double *matrix, column[ROWS], fetched[ROWS];
    MPI_Win win;
    MPI_Win_allocate(ROWS * COLUMNS * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &matrix, &win);
    for (int i = 0; i < ROWS * COLUMNS; i++) matrix[i] = i;
    MPI_Datatype type;
    MPI_Type_vector(ROWS, 1, COLUMNS, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < ROWS; i++) column[i] = 1.5;
    MPI_Win_fence(0, win);
    MPI_Accumulate(column, ROWS, MPI_DOUBLE, 0, 2, 1, type, MPI_SUM, win);
    MPI_Win_fence(0, win);
    MPI_Get_accumulate(NULL, 0, MPI_DOUBLE, fetched, ROWS, MPI_DOUBLE, 0, 2, 1, type, MPI_NO_OP, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < ROWS; i++) CHECK(fetched[i] == i * COLUMNS + 2 + 1.5 * size);
    if (rank == 0)
        for (int i = 0; i < ROWS * COLUMNS; i++) CHECK(matrix[i] == i + (i % COLUMNS == 2 ? 1.5 * size : 0));
    struct pair { double value; int index; } mine = {rank * 2.0, rank}, *pairs = (struct pair *)matrix;
    MPI_Win_fence(0, win);
    if (rank == 0) pairs[0].value = -1;
    MPI_Win_fence(0, win);
    MPI_Accumulate(&mine, 1, MPI_DOUBLE_INT, 0, 0, 1, MPI_DOUBLE_INT, MPI_MAXLOC, win);
    MPI_Win_fence(0, win);
    if (rank == 0) CHECK(pairs[0].value == 2.0 * (size - 1) && pairs[0].index == size - 1);
    MPI_Type_free(&type);
    MPI_Win_free(&win);
}

static void shared_memory(void) {
    MPI_Comm here;
    MPI_Win win;
    int *mine, *theirs, unit, me, members;
    MPI_Aint bytes;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Comm_rank(here, &me);
    MPI_Comm_size(here, &members);
    bytes = (me + 1) * sizeof(int);
    MPI_Win_allocate_shared(bytes, sizeof(int), MPI_INFO_NULL, here, &mine, &win);
    MPI_Comm_free(&here);
    attributes(win, mine, bytes, sizeof(int), MPI_WIN_FLAVOR_SHARED);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    mine[me] = me;
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    int *next = NULL;
    for (int from = 0; from < members; from++) {
        MPI_Win_shared_query(win, from, &bytes, &unit, &theirs);
        CHECK(bytes == (MPI_Aint)((from + 1) * sizeof(int)) && unit == sizeof(int));
        CHECK(next == NULL || theirs == next);
        CHECK_EQ(theirs[from], from);
        next = theirs + from + 1;
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

static void dynamic(void) {
    MPI_Win win;
    MPI_Aint address, *addresses = malloc(size * sizeof *addresses);
    int *memory = calloc(2, sizeof(int)), value = 5 + rank;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_attach(win, memory, 2 * sizeof(int));
    MPI_Get_address(&memory[1], &address);
    MPI_Allgather(&address, 1, MPI_AINT, addresses, 1, MPI_AINT, MPI_COMM_WORLD);
    int right = (rank + 1) % size;
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_INT, right, addresses[right], 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    CHECK_EQ(memory[1], 5 + (rank + size - 1) % size);
    MPI_Win_detach(win, memory);
    MPI_Win_free(&win);
    free(memory);
    free(addresses);
}

static int deleted;
static int on_delete(MPI_Win win, int keyval, void *value, void *extra) {
    (void)win, (void)keyval, (void)extra;
    deleted += *(int *)value;
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    int *mine, keyval, seven = 7, length;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Win win;
    MPI_Alloc_mem(COUNT * sizeof(int), MPI_INFO_NULL, &mine);
    MPI_Win_create(mine, COUNT * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    attributes(win, mine, COUNT * sizeof(int), sizeof(int), MPI_WIN_FLAVOR_CREATE);
    MPI_Win_set_name(win, "counters");
    MPI_Win_get_name(win, name, &length);
    CHECK(strcmp(name, "counters") == 0 && length == 8);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &keyval, NULL);
    MPI_Win_set_attr(win, keyval, &seven);
    by_fence(win, mine);
    by_groups(win, mine);
    by_locks(win, mine);
    MPI_Win_free_keyval(&keyval);
    MPI_Win_free(&win);
    CHECK(win == MPI_WIN_NULL && deleted == 7);
    MPI_Free_mem(mine);
    by_types();
    shared_memory();
    dynamic();
    return finish();
}
