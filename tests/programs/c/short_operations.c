// Operations on elements of one type, which take a shorter way once an epoch has shown that nothing is in it: an epoch
// that is over, or memory outside of the window, stops them as before, and operations of all lengths and ways move what
// they shall, accumulates atomically and in order.
//# ranks: 4
//# progress: all
#include "check.h"

enum { CELLS = 20000, ROUNDS = 300 };
static MPI_Win win, bytes_win;
static long *memory;

// The same two operations after each end of an epoch: access is over, however often it was used.
static void no_access(int target) {
    long value = 7;
    CHECK_EQ(class_of(MPI_Put(&value, 1, MPI_LONG, target, 1, 1, MPI_LONG, win)), MPI_ERR_RMA_SYNC);
    CHECK_EQ(class_of(MPI_Fetch_and_op(&value, &value, MPI_LONG, target, 1, MPI_SUM, win)), MPI_ERR_RMA_SYNC);
    CHECK_EQ(class_of(MPI_Win_flush(target, win)), MPI_ERR_RMA_SYNC);
    CHECK_EQ(class_of(MPI_Win_unlock(target, win)), MPI_ERR_RMA_SYNC);
}

// Some operations on a target's cell 0 that leave it as it is, and some that are refused.
static void use(int target, int locked) {
    // An epoch that waits for access reads them later.
    static long value = 0, got;
    got = -1;
    for (int again = 0; again < 3; again++) {
        MPI_Put(&value, 1, MPI_LONG, target, 2 + rank, 1, MPI_LONG, win);
        MPI_Get(&got, 1, MPI_LONG, target, 2 + rank, 1, MPI_LONG, win);
        MPI_Accumulate(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, win);
        if (locked) CHECK_EQ(MPI_Win_flush(target, win), MPI_SUCCESS);
        else CHECK_EQ(class_of(MPI_Win_flush(target, win)), MPI_ERR_RMA_SYNC);
        CHECK_EQ(class_of(MPI_Put(&value, 1, MPI_LONG, target, CELLS, 1, MPI_LONG, win)), MPI_ERR_RMA_RANGE);
        CHECK_EQ(class_of(MPI_Put(&value, 1, MPI_LONG, target, -1, 1, MPI_LONG, win)), MPI_ERR_RMA_RANGE);
        CHECK_EQ(class_of(MPI_Get(&got, 2, MPI_LONG, target, CELLS - 1, 2, MPI_LONG, win)), MPI_ERR_RMA_RANGE);
        CHECK_EQ(class_of(MPI_Put(&value, 1, MPI_LONG, target, (MPI_Aint)1 << 61, 1, MPI_LONG, win)),
                 MPI_ERR_RMA_RANGE);
        CHECK_EQ(class_of(MPI_Put(NULL, 1, MPI_LONG, target, 0, 1, MPI_LONG, win)), MPI_ERR_BUFFER);
        CHECK_EQ(class_of(MPI_Put(&value, -1, MPI_LONG, target, 0, -1, MPI_LONG, win)), MPI_ERR_COUNT);
        CHECK_EQ(class_of(MPI_Put(&value, 1, MPI_LONG, size, 0, 1, MPI_LONG, win)), MPI_ERR_RANK);
        CHECK_EQ(class_of(MPI_Accumulate(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_OP_NULL, win)), MPI_ERR_OP);
        CHECK_EQ(MPI_Put(&value, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win), MPI_SUCCESS);
        if (locked) CHECK_EQ(got, 0);
    }
}

static void kinds_of_epochs(void) {
    int other = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Group all, to, from;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &other, &to);
    MPI_Group_incl(all, 1, &before, &from);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int kind = 0; kind < 2; kind++) {
        no_access(other);
        MPI_Win_lock(kind ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, other, 0, win);
        use(other, 1);
        MPI_Win_unlock(other, win);
        no_access(other);
    }
    MPI_Win_lock_all(0, win);
    use(other, 1);
    CHECK_EQ(class_of(MPI_Win_unlock(other, win)), MPI_ERR_RMA_SYNC);
    use(rank, 1);
    MPI_Win_unlock_all(win);
    no_access(other);
    CHECK_EQ(class_of(MPI_Win_unlock_all(win)), MPI_ERR_RMA_SYNC);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_fence(0, win);
    use(other, 0);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    no_access(other);
    MPI_Win_post(from, 0, win);
    MPI_Win_start(to, 0, win);
    use(other, 0);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    no_access(other);
    // Two locks at once: the end of one leaves the other.
    MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win);
    use(other, 1);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    use(rank, 1);
    use(other, 1);
    MPI_Win_unlock(rank, win);
    use(other, 1);
    CHECK_EQ(class_of(MPI_Win_free(&win)), MPI_ERR_RMA_SYNC);
    use(other, 1);
    MPI_Win_unlock(other, win);
    MPI_Group_free(&all), MPI_Group_free(&to), MPI_Group_free(&from);
    MPI_Barrier(MPI_COMM_WORLD);
}

// Everybody adds to the same cells of rank 0: one by one, many at once, with and without result, by several types.
static void sums(void) {
    static long ones[CELLS], got[CELLS];
    long one = 1, last = -1, ticket, seen = 0;
    for (int i = 0; i < CELLS; i++) ones[i] = 1;
    MPI_Win_lock_all(0, win);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Fetch_and_op(&one, &ticket, MPI_LONG, 0, 0, MPI_SUM, win);
        MPI_Win_flush(0, win);
        CHECK(ticket > last);
        last = ticket;
        MPI_Accumulate(&one, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_SUM, win);
        if (round % 50 == 0) MPI_Accumulate(ones, CELLS, MPI_LONG, 0, 0, CELLS, MPI_LONG, MPI_SUM, win);
        // In order behind the long one, which may still be under way.
        MPI_Get_accumulate(&one, 1, MPI_LONG, got, 1, MPI_LONG, 0, CELLS - 1 - rank, 1, MPI_LONG, MPI_SUM, win);
        MPI_Fetch_and_op(NULL, &seen, MPI_LONG, 0, CELLS - 1 - rank, MPI_NO_OP, win);
        MPI_Win_flush(0, win);
        CHECK(seen >= got[0] + 1 && got[0] >= round + 1 + round / 50);
        long compare = 0, swapped;
        MPI_Compare_and_swap(&one, &compare, &swapped, MPI_LONG, 0, CELLS / 2, win);
        MPI_Win_flush(0, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    long wide = (ROUNDS + 49) / 50 * (long)size;
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        CHECK_EQ(memory[0], ROUNDS * (long)size + wide);
        CHECK_EQ(memory[1], ROUNDS * (long)size + wide);
        for (int i = 8; i < CELLS / 2; i++) CHECK_EQ(memory[i], wide);
        for (int i = 0; i < size; i++) CHECK_EQ(memory[CELLS - 1 - i], wide + ROUNDS);
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// Puts and gets of all lengths, with and without a request, up to the last byte of a part: the bytes beside them stay.
static void lengths(void) {
    static const int each[] = {1,    3,    8,    63,    64,    65,    255,   256,   1000,
                               2047, 2048, 4097, 16383, 16384, 40000, 65536, 65537, CELLS * (int)sizeof(long) - 2};
    enum { ALL = CELLS * sizeof(long) };
    static unsigned char out[ALL], in[ALL];
    unsigned char *mine = (unsigned char *)memory;
    int other = (rank + 1) % size;
    for (int i = 0; i < (int)(sizeof each / sizeof *each); i++) {
        int bytes = each[i], odd = i % 3 + 1;
        if (bytes + odd > ALL) odd = 1;
        for (int at = 0; at < ALL; at++) mine[at] = 7, out[at] = at * 31 + i, in[at] = 9;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Request request;
        MPI_Win_lock(i % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, other, 0, bytes_win);
        CHECK_EQ(class_of(MPI_Put(out, bytes, MPI_CHAR, other, ALL - bytes + 1, bytes, MPI_CHAR, bytes_win)),
                 MPI_ERR_RMA_RANGE);
        CHECK_EQ(class_of(MPI_Rput(out, bytes, MPI_CHAR, other, -1, bytes, MPI_CHAR, bytes_win, &request)),
                 MPI_ERR_RMA_RANGE);
        CHECK_EQ(class_of(MPI_Rget(NULL, bytes, MPI_CHAR, other, 0, bytes, MPI_CHAR, bytes_win, &request)),
                 MPI_ERR_BUFFER);
        if (i % 2) {
            CHECK_EQ(MPI_Put(out + odd, bytes, MPI_CHAR, other, ALL - odd - bytes, bytes, MPI_CHAR, bytes_win),
                     MPI_SUCCESS);
            CHECK_EQ(MPI_Win_flush(other, bytes_win), MPI_SUCCESS);
            CHECK_EQ(MPI_Get(in + 1, bytes, MPI_CHAR, other, ALL - odd - bytes, bytes, MPI_CHAR, bytes_win),
                     MPI_SUCCESS);
            CHECK_EQ(MPI_Win_flush(other, bytes_win), MPI_SUCCESS);
        } else {
            CHECK_EQ(MPI_Rput(out + odd, bytes, MPI_CHAR, other, ALL - odd - bytes, bytes, MPI_CHAR, bytes_win,
                              &request), MPI_SUCCESS);
            CHECK_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
            CHECK_EQ(MPI_Win_flush(other, bytes_win), MPI_SUCCESS);
            CHECK_EQ(MPI_Rget(in + 1, bytes, MPI_CHAR, other, ALL - odd - bytes, bytes, MPI_CHAR, bytes_win,
                              &request), MPI_SUCCESS);
            CHECK_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
        }
        MPI_Win_unlock(other, bytes_win);
        for (int at = 0; at < ALL; at++) {
            int is_new = at >= 1 && at < 1 + bytes;
            CHECK_EQ(in[at], is_new ? out[odd + at - 1] : 9);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, bytes_win);
        for (int at = 0; at < ALL; at++) {
            int is_new = at >= ALL - odd - bytes && at < ALL - odd;
            CHECK_EQ(mine[at], is_new ? out[at - (ALL - odd - bytes) + odd] : 7);
        }
        MPI_Win_unlock(rank, bytes_win);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// Everybody adds to the same elements of the last rank, of all lengths and by all ways: what is fetched only grows.
static void fetched_sums(void) {
    static const int each[] = {1, 2, 64, 65, 513, 8192, 8193};
    enum { LENGTHS = sizeof each / sizeof *each, TURNS = 3 };
    static long ones[CELLS], got[CELLS], last[CELLS], sum[CELLS];
    int target = size - 1;
    for (int at = 0; at < CELLS; at++) ones[at] = 1, last[at] = -1, sum[at] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < LENGTHS; i++) {
            int count = each[i];
            MPI_Get_accumulate(ones, count, MPI_LONG, got, count, MPI_LONG, target, 0, count, MPI_LONG, MPI_SUM, win);
            MPI_Win_flush(target, win);
            for (int at = 0; at < count; at++) {
                CHECK(got[at] > last[at]);
                last[at] = got[at];
                sum[at]++;
            }
            MPI_Accumulate(ones, count, MPI_LONG, target, 0, count, MPI_LONG, MPI_SUM, win);
            for (int at = 0; at < count; at++) sum[at]++;
            MPI_Get_accumulate(NULL, 0, MPI_LONG, got, count, MPI_LONG, target, 0, count, MPI_LONG, MPI_NO_OP, win);
            MPI_Win_flush(target, win);
            // Behind what this rank has added just before.
            for (int at = 0; at < count; at++) CHECK(got[at] > last[at]);
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == target) {
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
        for (int at = 0; at < CELLS; at++) CHECK_EQ(memory[at], sum[at] * size);
        MPI_Win_unlock(rank, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// Locks that are free, and locks that are not: a counter changed under exclusive ones.
static void locks(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        long value;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, win);
        MPI_Get(&value, 1, MPI_LONG, size - 1, 5, 1, MPI_LONG, win);
        MPI_Win_flush(size - 1, win);
        value++;
        MPI_Put(&value, 1, MPI_LONG, size - 1, 5, 1, MPI_LONG, win);
        MPI_Win_unlock(size - 1, win);
        if (round % 7 == 0) MPI_Win_lock_all(0, win), MPI_Win_unlock_all(win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) {
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
        CHECK_EQ(memory[5], ROUNDS * (long)size);
        MPI_Win_unlock(rank, win);
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Win_allocate(CELLS * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    for (int i = 0; i < CELLS; i++) memory[i] = 0;
    kinds_of_epochs();
    sums();
    for (int i = 0; i < CELLS; i++) memory[i] = 0;
    locks();
    MPI_Win_create(memory, CELLS * sizeof(long), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &bytes_win);
    MPI_Win_set_errhandler(bytes_win, MPI_ERRORS_RETURN);
    lengths();
    MPI_Win_free(&bytes_win);
    for (int i = 0; i < CELLS; i++) memory[i] = 0;
    fetched_sums();
    MPI_Win_free(&win);
    return finish();
}
