// Random epochs of all kinds, blocking and nonblocking, with random operations, targets and sizes.
// All ranks draw one sequence, so each knows what everybody does, and compares every byte of its
// window, and all that it reads, with a model that does the same one after the other. The seed is
// the first argument.
//# ranks: 5 16
//# abi: mpi5
//# progress: all
//# args: 1
//# timeout: 120
#include "check.h"
#include <stddef.h>
#include <stdint.h>

enum { PHASES = 48, OPERATIONS = 3, PART = 24000, SLOT = OPERATIONS * PART, COUNTERS = 64, RECORD = 8, RANKS_MAX = 16 };
enum { FENCE, POST_START, LOCKS, LOCK_ALL, KINDS };
enum { PUT, GET, ADD, FETCH, BOOK, ACTIONS };

// A window: for each origin a slot with a part for each of its operations, sums, tickets, and a
// record that only holders of an exclusive lock change.
typedef struct {
    unsigned char slots[RANKS_MAX][SLOT];
    int64_t sums[COUNTERS], tickets[COUNTERS], record[RECORD];
} Memory;

typedef struct {
    int action, target, at, length;
    uint64_t key;
} Operation;

static Memory *memory, *model;
static unsigned char (*written)[SLOT]; // my slot at each target
static unsigned char sources[OPERATIONS][PART], results[OPERATIONS][PART];
static int64_t amounts[OPERATIONS][COUNTERS], found[OPERATIONS];
static Operation plans[RANKS_MAX][OPERATIONS];
static int kind, is_nonblocking;
static MPI_Win win;
static MPI_Request requests[4 + 2 * OPERATIONS];
static int pending;
static uint64_t seed;

static uint64_t next_random(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 33;
}

static unsigned char byte_of(uint64_t key, int i) { return (unsigned char)(key * 31 + (uint64_t)i * 7 + (key >> 8)); }

static void draw_phase(void) {
    kind = (int)(next_random() % KINDS);
    is_nonblocking = (int)(next_random() % 2);
    for (int origin = 0; origin < size; origin++)
        for (int i = 0; i < OPERATIONS; i++) {
            Operation *it = &plans[origin][i];
            it->key = next_random();
            it->action = (int)(next_random() % ACTIONS);
            if (it->action == BOOK && (kind != LOCKS || is_nonblocking)) it->action = PUT;
            it->target = (int)(next_random() % (uint64_t)size);
            int limit = next_random() % 3 ? 200 : PART;
            it->length = (int)(next_random() % (uint64_t)limit);
            it->at = (int)(next_random() % COUNTERS);
            if (it->action == ADD) it->length = 1 + it->length % (COUNTERS - it->at);
        }
}

// What one rank's operation does to a window, and to my own slots elsewhere.
static void apply(int origin, int i) {
    const Operation *it = &plans[origin][i];
    if (origin == rank && it->action == PUT)
        for (int b = 0; b < it->length; b++) written[it->target][i * PART + b] = byte_of(it->key, b);
    if (it->target != rank) return;
    if (it->action == PUT)
        for (int b = 0; b < it->length; b++) model->slots[origin][i * PART + b] = byte_of(it->key, b);
    else if (it->action == ADD)
        for (int c = 0; c < it->length; c++) model->sums[it->at + c] += (int64_t)(it->key % 1000) + c;
    else if (it->action == FETCH)
        model->tickets[it->at]++;
    else if (it->action == BOOK)
        for (int c = 0; c < RECORD; c++) model->record[c]++;
}

#define PLACE(field) ((MPI_Aint)offsetof(Memory, field))

// Reads the record and writes it back with one more: nobody comes between while the lock is exclusive.
static void book(int target) {
    int64_t record[RECORD];
    MPI_Get(record, RECORD, MPI_INT64_T, target, PLACE(record), RECORD, MPI_INT64_T, win);
    MPI_Win_flush(target, win);
    int64_t first = record[0];
    for (int c = 0; c < RECORD; c++) {
        CHECK_EQ(record[c], first);
        record[c]++;
    }
    MPI_Put(record, RECORD, MPI_INT64_T, target, PLACE(record), RECORD, MPI_INT64_T, win);
    MPI_Win_flush_local(target, win);
}

static void operate(int i) {
    static const int64_t one = 1;
    const Operation *it = &plans[rank][i];
    MPI_Aint part = PLACE(slots) + (MPI_Aint)rank * SLOT + i * PART;
    MPI_Aint sum = PLACE(sums) + it->at * (MPI_Aint)sizeof(int64_t);
    MPI_Aint ticket = PLACE(tickets) + it->at * (MPI_Aint)sizeof(int64_t);
    if (it->action == PUT) {
        for (int b = 0; b < it->length; b++) sources[i][b] = byte_of(it->key, b);
        MPI_Put(sources[i], it->length, MPI_BYTE, it->target, part, it->length, MPI_BYTE, win);
    } else if (it->action == GET) {
        memset(results[i], 0xee, PART);
        MPI_Get(results[i], it->length, MPI_BYTE, it->target, part, it->length, MPI_BYTE, win);
    } else if (it->action == ADD) {
        for (int c = 0; c < it->length; c++) amounts[i][c] = (int64_t)(it->key % 1000) + c;
        MPI_Accumulate(amounts[i], it->length, MPI_INT64_T, it->target, sum, it->length, MPI_INT64_T, MPI_SUM, win);
    } else if (it->action == FETCH) {
        MPI_Fetch_and_op(&one, &found[i], MPI_INT64_T, it->target, ticket, MPI_SUM, win);
    } else {
        book(it->target);
    }
}

static void operate_all(void) {
    for (int i = 0; i < OPERATIONS; i++) operate(i);
}

static void fences(void) {
    if (!is_nonblocking) {
        MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
        operate_all();
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
        return;
    }
    MPIX_Win_ifence(MPI_MODE_NOPRECEDE, win, &requests[pending++]);
    operate_all();
    MPIX_Win_ifence(MPI_MODE_NOSUCCEED, win, &requests[pending++]);
}

// The ranks that are `origin`'s targets, or whose target `target` is; the other one is -1.
static MPI_Group partners(int origin, int target) {
    int members[RANKS_MAX], count = 0;
    for (int other = 0; other < size; other++) {
        int is_one = 0;
        for (int i = 0; i < OPERATIONS; i++)
            is_one |= target < 0 ? plans[origin][i].target == other : plans[other][i].target == target;
        if (is_one) members[count++] = other;
    }
    MPI_Group all, some;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, count, members, &some);
    MPI_Group_free(&all);
    return some;
}

static void post_start(void) {
    MPI_Group origins = partners(-1, rank), targets = partners(rank, -1);
    if (is_nonblocking) {
        MPIX_Win_ipost(origins, 0, win, &requests[pending++]);
        MPIX_Win_istart(targets, 0, win, &requests[pending++]);
        operate_all();
        MPIX_Win_icomplete(win, &requests[pending++]);
        MPIX_Win_iwait(win, &requests[pending++]);
    } else {
        MPI_Win_post(origins, 0, win);
        MPI_Win_start(targets, 0, win);
        operate_all();
        MPI_Win_complete(win);
        MPI_Win_wait(win);
    }
    MPI_Group_free(&origins);
    MPI_Group_free(&targets);
}

static void locks(void) {
    for (int i = 0; i < OPERATIONS; i++) {
        const Operation *it = &plans[rank][i];
        int target = it->target;
        int type = it->action == BOOK || it->key % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
        if (is_nonblocking) {
            MPIX_Win_ilock(type, target, 0, win, &requests[pending++]);
            operate(i);
            MPIX_Win_iunlock(target, win, &requests[pending++]);
        } else {
            MPI_Win_lock(type, target, 0, win);
            operate(i);
            MPI_Win_unlock(target, win);
        }
    }
}

static void lock_all(void) {
    if (is_nonblocking) {
        MPIX_Win_ilock_all(0, win, &requests[pending++]);
        operate_all();
        MPIX_Win_iflush_all(win, &requests[pending++]);
        MPIX_Win_iunlock_all(win, &requests[pending++]);
    } else {
        MPI_Win_lock_all(0, win);
        operate_all();
        if (plans[rank][0].key % 2) MPI_Win_flush_all(win);
        MPI_Win_unlock_all(win);
    }
}

// What this rank has read: its own slots as they were, and tickets that others may have taken meanwhile.
static void check_reads(const int64_t *most) {
    for (int i = 0; i < OPERATIONS; i++) {
        const Operation *it = &plans[rank][i];
        if (it->action == GET) {
            CHECK(memcmp(results[i], &written[it->target][i * PART], (size_t)it->length) == 0);
            for (int b = it->length; b < PART; b++) CHECK_EQ(results[i][b], 0xee);
        } else if (it->action == FETCH) {
            CHECK(found[i] >= 0 && found[i] < most[i]);
        }
    }
}

// The largest ticket that an operation of mine could have got, plus one.
static void count_tickets(int64_t *most) {
    static int64_t taken[RANKS_MAX][COUNTERS];
    for (int origin = 0; origin < size; origin++)
        for (int i = 0; i < OPERATIONS; i++)
            if (plans[origin][i].action == FETCH) taken[plans[origin][i].target][plans[origin][i].at]++;
    for (int i = 0; i < OPERATIONS; i++) most[i] = taken[plans[rank][i].target][plans[rank][i].at];
}

static void check_window(void) {
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    MPI_Win_sync(win);
    CHECK(memcmp(memory->slots, model->slots, sizeof model->slots) == 0);
    for (int c = 0; c < COUNTERS; c++) {
        CHECK_EQ(memory->sums[c], model->sums[c]);
        CHECK_EQ(memory->tickets[c], model->tickets[c]);
    }
    for (int c = 0; c < RECORD; c++) CHECK_EQ(memory->record[c], model->record[c]);
    MPI_Win_unlock(rank, win);
}

static void phase(void) {
    static void (*const epochs[KINDS])(void) = {fences, post_start, locks, lock_all};
    int64_t most[OPERATIONS];
    draw_phase();
    count_tickets(most);
    pending = 0;
    epochs[kind]();
    MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE);
    check_reads(most);
    for (int origin = 0; origin < size; origin++)
        for (int i = 0; i < OPERATIONS; i++) apply(origin, i);
    MPI_Barrier(MPI_COMM_WORLD);
    check_window();
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK(size <= RANKS_MAX);
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    MPI_Win_allocate(sizeof *memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 0, sizeof *memory);
    model = calloc(1, sizeof *model);
    written = calloc(RANKS_MAX, SLOT);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < PHASES; i++) phase();
    MPI_Win_free(&win);
    free(model);
    free(written);
    return finish();
}
