/* Rounds of one-sided operations in windows of all flavors, under all kinds of synchronisation. Every rank knows what
 * all others do, so each knows what must lie in its window at the end.
 *
 * A window has: words that nobody changes, for gets; a place for each put of each rank; sums, which all add to; and a
 * counter from which each draws tickets. */
#include "soak.h"
#include <stdio.h>

#define MOST 48
#define CONSTANT 512
#define SUMS 64
#define LONGEST 300

enum { PUT, GET, ADD, GET_ADD, TICKET, SWAP, OPERATIONS };
enum { CREATE, ALLOCATE, DYNAMIC, FLAVORS };
enum { FENCE, LOCK, LOCK_ALL, GROUPS, SYNCS };

typedef struct {
    int what, target, at, length, waits;
    uint64_t key;
} Operation;

typedef struct {
    int count, flavor, sync, exclusive;
    size_t words, puts, swaps, sums, ticket;
    uint64_t *memory;
    MPI_Aint base[1024];
    MPI_Win win;
    Operation own[MOST];
    uint64_t *data[MOST];
} Window;

/* What a rank does. Only LOCK synchronises by target, so only there a rank has one target for all. */
static int operations_of(const Round *round, const Window *window, int rank, Operation *list) {
    Dice dice = own_dice(round, rank, 6);
    int one_target = below(&dice, round->size);
    for (int i = 0; i < window->count; i++) {
        Operation *operation = &list[i];
        operation->what = below(&dice, OPERATIONS);
        operation->target = window->sync == LOCK ? one_target : below(&dice, round->size);
        operation->length = 1 + below(&dice, one_in(&dice, 3) ? LONGEST : 8);
        if (operation->what == ADD || operation->what == GET_ADD) operation->length = 1 + operation->length % SUMS;
        int room = operation->what == GET ? CONSTANT : SUMS;
        operation->at = below(&dice, room - operation->length + 1 > 0 ? room - operation->length + 1 : 1);
        operation->key = key_of(round, rank, operation->target, i + 1);
        operation->waits = one_in(&dice, 4);
    }
    return window->count;
}

static uint64_t constant(const Round *round, int rank, int at) {
    return word(key_of(round, rank, rank, 0), (uint64_t)at);
}

static void open_window(Round *round, Window *window) {
    Dice *dice = &round->dice;
    window->count = 1 + below(dice, MOST);
    if (window->count > round->effort) window->count = round->effort;
    window->flavor = below(dice, FLAVORS), window->sync = below(dice, SYNCS), window->exclusive = one_in(dice, 2);
    window->puts = CONSTANT;
    window->swaps = window->puts + (size_t)round->size * MOST * LONGEST;
    window->sums = window->swaps + (size_t)round->size * MOST;
    window->ticket = window->sums + SUMS;
    window->words = window->ticket + 1;
    MPI_Aint bytes = (MPI_Aint)(window->words * 8);
    MPI_Aint here = 0;
    if (window->flavor == ALLOCATE) {
        MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, round->comm, &window->memory, &window->win);
    } else {
        MPI_Alloc_mem(bytes, MPI_INFO_NULL, &window->memory);
        if (window->flavor == CREATE) {
            MPI_Win_create(window->memory, bytes, 8, MPI_INFO_NULL, round->comm, &window->win);
        } else {
            MPI_Win_create_dynamic(MPI_INFO_NULL, round->comm, &window->win);
            MPI_Win_attach(window->win, window->memory, bytes);
            MPI_Get_address(window->memory, &here);
        }
    }
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, round->me, 0, window->win);
    memset(window->memory, 0, (size_t)bytes);
    for (int i = 0; i < CONSTANT; i++) window->memory[i] = constant(round, round->me, i);
    MPI_Win_unlock(round->me, window->win);
    MPI_Allgather(&here, 1, MPI_AINT, window->base, 1, MPI_AINT, round->comm);
}

static MPI_Aint place(const Window *window, int target, size_t at) {
    return window->flavor == DYNAMIC ? MPI_Aint_add(window->base[target], (MPI_Aint)(at * 8)) : (MPI_Aint)at;
}

static size_t put_place(const Round *round, const Window *window, int from, int number) {
    (void)round;
    return window->puts + ((size_t)from * MOST + (size_t)number) * LONGEST;
}

static void begin(const Round *round, Window *window, MPI_Group all) {
    switch (window->sync) {
    case FENCE: MPI_Win_fence(MPI_MODE_NOPRECEDE, window->win); break;
    case LOCK:
        MPI_Win_lock(window->exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, window->own[0].target, 0, window->win);
        break;
    case LOCK_ALL: MPI_Win_lock_all(0, window->win); break;
    default: MPI_Win_post(all, 0, window->win); MPI_Win_start(all, 0, window->win);
    }
    (void)round;
}

static void end(Window *window) {
    switch (window->sync) {
    case FENCE: MPI_Win_fence(MPI_MODE_NOSUCCEED, window->win); break;
    case LOCK: MPI_Win_unlock(window->own[0].target, window->win); break;
    case LOCK_ALL: MPI_Win_unlock_all(window->win); break;
    default: MPI_Win_complete(window->win); MPI_Win_wait(window->win);
    }
}

static void issue(const Round *round, Window *window, int number, MPI_Request *request) {
    Operation *operation = &window->own[number];
    uint64_t *data = window->data[number] = malloc((2 * LONGEST + 2) * 8), *other = data + LONGEST;
    int length = operation->length, target = operation->target,
        passive = window->sync == LOCK || window->sync == LOCK_ALL;
    MPI_Aint at;
    MPI_Win win = window->win;
    MPI_Datatype u64 = MPI_UINT64_T;
    *request = MPI_REQUEST_NULL;
    for (int i = 0; i < length; i++) data[i] = word(operation->key, (uint64_t)i);
    switch (operation->what) {
    case PUT:
        at = place(window, target, put_place(round, window, round->me, number));
        if (passive && operation->waits) MPI_Rput(data, length, u64, target, at, length, u64, win, request);
        else MPI_Put(data, length, u64, target, at, length, u64, win);
        break;
    case GET:
        at = place(window, target, (size_t)operation->at);
        if (passive && operation->waits) MPI_Rget(data, length, u64, target, at, length, u64, win, request);
        else MPI_Get(data, length, u64, target, at, length, u64, win);
        break;
    case ADD:
        at = place(window, target, window->sums + (size_t)operation->at);
        MPI_Accumulate(data, length, u64, target, at, length, u64, MPI_SUM, win);
        break;
    case GET_ADD:
        at = place(window, target, window->sums + (size_t)operation->at);
        MPI_Get_accumulate(data, length, u64, other, length, u64, target, at, length, u64, MPI_SUM, win);
        break;
    case TICKET:
        data[0] = 1;
        MPI_Fetch_and_op(data, other, u64, target, place(window, target, window->ticket), MPI_SUM, win);
        break;
    default:
        /* From 0 to the word, in a place of its own. */
        other[0] = 0;
        at = place(window, target, window->swaps + (size_t)round->me * MOST + (size_t)number);
        MPI_Compare_and_swap(data, other, other + 1, u64, target, at, win);
    }
    if (passive && operation->waits && *request == MPI_REQUEST_NULL) MPI_Win_flush(target, win);
}

static void check_own(const Round *round, const Window *window) {
    for (int number = 0; number < window->count; number++) {
        const Operation *operation = &window->own[number];
        const uint64_t *data = window->data[number];
        if (operation->what == GET)
            for (int i = 0; i < operation->length; i++)
                if (data[i] != constant(round, operation->target, operation->at + i))
                    wrong(round, "get %d of %d words from rank %d (flavor %d, synchronisation %d): word %d", number,
                          operation->length, operation->target, window->flavor, window->sync, i);
        if (operation->what == SWAP && data[LONGEST + 1] != 0)
            wrong(round, "compare and swap %d found %llx, not 0", number, (unsigned long long)data[LONGEST + 1]);
        count_done(1, (uint64_t)operation->length * 8);
    }
}

/* The tickets of a counter are 0, 1, 2, ...: their number and their squares say so. */
static void check_tickets(const Round *round, const Window *window) {
    uint64_t *sums = calloc((size_t)round->size * 2, 8);
    for (int number = 0; number < window->count; number++) {
        const Operation *operation = &window->own[number];
        if (operation->what != TICKET) continue;
        uint64_t ticket = window->data[number][LONGEST];
        sums[2 * operation->target] += ticket + 1, sums[2 * operation->target + 1] += ticket * ticket;
    }
    MPI_Allreduce(MPI_IN_PLACE, sums, round->size * 2, MPI_UINT64_T, MPI_SUM, round->comm);
    uint64_t drawn = window->memory[window->ticket], squares = 0;
    for (uint64_t ticket = 0; ticket < drawn; ticket++) squares += ticket * ticket;
    if (sums[2 * round->me] != drawn * (drawn + 1) / 2 || sums[2 * round->me + 1] != squares)
        wrong(round, "a ticket of rank %d was drawn twice (flavor %d, synchronisation %d)", round->me, window->flavor,
              window->sync);
    free(sums);
}

static void check_memory(const Round *round, const Window *window) {
    uint64_t *expected = calloc(window->words, 8);
    Operation list[MOST];
    for (int i = 0; i < CONSTANT; i++) expected[i] = constant(round, round->me, i);
    for (int from = 0; from < round->size; from++) {
        int count = operations_of(round, window, from, list);
        for (int number = 0; number < count; number++) {
            const Operation *operation = &list[number];
            if (operation->target != round->me) continue;
            uint64_t *at = expected + window->sums + operation->at;
            switch (operation->what) {
            case PUT:
                at = expected + put_place(round, window, from, number);
                for (int i = 0; i < operation->length; i++) at[i] = word(operation->key, (uint64_t)i);
                break;
            case ADD:
            case GET_ADD:
                for (int i = 0; i < operation->length; i++) at[i] += word(operation->key, (uint64_t)i);
                break;
            case TICKET: expected[window->ticket]++; break;
            case SWAP:
                expected[window->swaps + (size_t)from * MOST + (size_t)number] = word(operation->key, 0);
                break;
            default: break;
            }
        }
    }
    for (size_t i = 0; i < window->words; i++)
        if (window->memory[i] != expected[i])
            wrong(round,
                  "word %zu of the window is %llx, not %llx (puts from %zu, swaps %zu, sums %zu, ticket %zu; flavor "
                  "%d, "
                  "synchronisation %d)",
                  i, (unsigned long long)window->memory[i], (unsigned long long)expected[i], window->puts,
                  window->swaps, window->sums, window->ticket, window->flavor, window->sync);
    free(expected);
}

void windows(Round *round) {
    if (round->size > 1024) return;
    Window *window = calloc(1, sizeof *window);
    MPI_Group all;
    MPI_Comm_group(round->comm, &all);
    open_window(round, window);
    operations_of(round, window, round->me, window->own);
    MPI_Barrier(round->comm);
    Dice own = own_dice(round, round->me, 5);
    MPI_Request requests[MOST];
    MPI_Status statuses[MOST];
    begin(round, window, all);
    for (int i = 0; i < window->count; i++) {
        issue(round, window, i, &requests[i]);
        if (one_in(&own, 4)) compute(&own);
    }
    complete(round, &own, window->count, requests, statuses);
    end(window);
    compute(&own);
    MPI_Barrier(round->comm);
    MPI_Win_lock(MPI_LOCK_SHARED, round->me, 0, window->win);
    check_own(round, window);
    check_memory(round, window);
    check_tickets(round, window);
    MPI_Win_unlock(round->me, window->win);
    if (window->flavor == DYNAMIC) MPI_Win_detach(window->win, window->memory);
    uint64_t *memory = window->memory;
    MPI_Win_free(&window->win);
    if (window->flavor != ALLOCATE) MPI_Free_mem(memory);
    for (int i = 0; i < window->count; i++) free(window->data[i]);
    MPI_Group_free(&all);
    free(window);
}
