/* Rounds of collective operations: blocking, nonblocking (several under way at a time) and persistent, in place or
   not, on all ranks or on parts of them. What each rank must get follows from what all of them give. */
#include "soak.h"

#define AT_ONCE 4
#define MEMBERS 128

enum {
    BARRIER,
    BCAST,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    REDUCE,
    ALLREDUCE,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    SCAN,
    EXSCAN,
    OPERATIONS
};
static const char *const names[] = {
    "barrier",    "bcast",    "gather",    "gatherv", "scatter",   "scatterv",       "allgather",
    "allgatherv", "alltoall", "alltoallv", "reduce",  "allreduce", "reduce_scatter", "reduce_scatter_block",
    "scan",       "exscan"};
enum { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };

typedef struct {
    int what, form, root, each, in_place, order;
    int counts[MEMBERS], places[MEMBERS], total;
    uint64_t key, *give, *get, *expected;
    size_t got; /* words of `get` */
    MPI_Datatype type;
    MPI_Op op;
    MPI_Request request;
} Work;

/* x -> a x + b modulo 2^64, as pairs: their composition does not commute. */
static void compose(void *left, void *right, int *count, MPI_Datatype *type) {
    (void)type;
    uint64_t *first = left, *second = right;
    for (int i = 0; i < *count; i++, first += 2, second += 2) {
        uint64_t a = first[0] * second[0], b = first[1] * second[0] + second[1];
        second[0] = a, second[1] = b;
    }
}

/* What a member gives at a place of its memory, for another one or for all (0). */
static uint64_t given(const Work *work, int from, int to, int at) {
    return word(work->key ^ mix((uint64_t)from << 20 | (uint64_t)to), (uint64_t)at);
}

static void fold(const Work *work, uint64_t *into, const uint64_t *next, int words) {
    if (work->order) {
        for (int i = 0; i < words; i += 2) {
            uint64_t a = into[i] * next[i], b = into[i + 1] * next[i] + next[i + 1];
            into[i] = a, into[i + 1] = b;
        }
        return;
    }
    for (int i = 0; i < words; i++) into[i] = work->op == MPI_SUM ? into[i] + next[i] : into[i] ^ next[i];
}

/* The operands of members 0 to `last`, folded in their order. */
static void fold_all(const Work *work, int last, int words, uint64_t *into) {
    uint64_t *next = malloc((size_t)words * 8 + 8);
    for (int member = 0; member <= last; member++) {
        for (int i = 0; i < words; i++) (member == 0 ? into : next)[i] = given(work, member, 0, i);
        if (member > 0) fold(work, into, next, words);
    }
    free(next);
}

static void plan_work(Round *round, Work *work, int number, MPI_Op composing, MPI_Datatype pair) {
    Dice *dice = &round->dice;
    static const int few[] = {0, 1, 2, 7, 64, 500}, many[] = {2100, 9000, 20000};
    memset(work, 0, sizeof *work);
    work->what = below(dice, OPERATIONS), work->form = below(dice, FORMS), work->root = below(dice, round->size);
    work->each = 2 * (one_in(dice, 6) ? many[below(dice, 3)] : few[below(dice, 6)]);
    if (work->each > round->effort) work->each = round->effort & ~1;
    work->in_place = one_in(dice, 3), work->order = one_in(dice, 3);
    work->key = key_of(round, 0, 0, number);
    work->type = work->order ? pair : MPI_UINT64_T;
    work->op = work->order ? composing : one_in(dice, 2) ? MPI_SUM : MPI_BXOR;
    int varies =
        work->what == GATHERV || work->what == SCATTERV || work->what == ALLGATHERV || work->what == REDUCE_SCATTER;
    for (int member = 0; member < round->size; member++) {
        work->counts[member] = varies ? work->each / 2 * (int)(given(work, member, 1, 0) % 3) & ~1 : work->each;
        work->places[member] = work->total;
        work->total += work->counts[member];
    }
    size_t all = (size_t)(work->total > work->each ? work->total : work->each) + (size_t)work->each * round->size + 2;
    work->give = malloc(all * 8), work->get = malloc(all * 8), work->expected = malloc(all * 8);
    memset(work->get, 0x5a, all * 8);
    work->got = all;
}

/* Fills what this member gives, and what it must get. */
static void prepare(const Round *round, Work *work) {
    int me = round->me, size = round->size, each = work->each, is_root = me == work->root;
    memcpy(work->expected, work->get, work->got * 8);
    for (int i = 0; i < (work->what == REDUCE_SCATTER || work->what == REDUCE_SCATTER_BLOCK ? work->total : each);
         i++)
        work->give[i] = given(work, me, 0, i);
    switch (work->what) {
    case BCAST:
        for (int i = 0; i < each; i++) work->expected[i] = given(work, work->root, 0, i);
        if (is_root) memcpy(work->get, work->expected, (size_t)each * 8);
        break;
    case GATHER:
    case GATHERV:
    case ALLGATHER:
    case ALLGATHERV:
        for (int i = 0; i < work->counts[me]; i++) work->give[i] = given(work, me, 0, i);
        if (is_root || work->what >= ALLGATHER)
            for (int from = 0; from < size; from++)
                for (int i = 0; i < work->counts[from]; i++)
                    work->expected[work->places[from] + i] = given(work, from, 0, i);
        break;
    case SCATTER:
    case SCATTERV:
        for (int to = 0; to < size; to++)
            for (int i = 0; i < work->counts[to]; i++) work->give[work->places[to] + i] = given(work, me, to, i);
        for (int i = 0; i < work->counts[me]; i++) work->expected[i] = given(work, work->root, me, i);
        break;
    case ALLTOALL:
    case ALLTOALLV:
        for (int other = 0; other < size; other++)
            for (int i = 0; i < each; i++) {
                work->give[other * each + i] = given(work, me, other, i);
                work->expected[other * each + i] = given(work, other, me, i);
            }
        break;
    case REDUCE:
        if (is_root) fold_all(work, size - 1, each, work->expected);
        break;
    case ALLREDUCE: fold_all(work, size - 1, each, work->expected); break;
    case REDUCE_SCATTER:
    case REDUCE_SCATTER_BLOCK: {
        uint64_t *all = malloc((size_t)work->total * 8 + 8);
        fold_all(work, size - 1, work->total, all);
        memcpy(work->expected, all + work->places[me], (size_t)work->counts[me] * 8);
        free(all);
        break;
    }
    case SCAN: fold_all(work, me, each, work->expected); break;
    case EXSCAN:
        if (me > 0) fold_all(work, me - 1, each, work->expected);
        break;
    default: break;
    }
}

/* Operations that take what they give from where they put the result. */
static const void *source_of(const Round *round, Work *work) {
    int me = round->me;
    if (!work->in_place) return work->give;
    switch (work->what) {
    case ALLGATHER:
    case ALLGATHERV:
        memcpy(work->get + work->places[me], work->give, (size_t)work->counts[me] * 8);
        return MPI_IN_PLACE;
    case ALLREDUCE:
    case SCAN: memcpy(work->get, work->give, (size_t)work->each * 8); return MPI_IN_PLACE;
    case REDUCE:
        if (me != work->root) return work->give;
        memcpy(work->get, work->give, (size_t)work->each * 8);
        return MPI_IN_PLACE;
    default: return work->give;
    }
}

#define CALL(NAME, ...)                                                                                              \
    switch (work->form) {                                                                                            \
    case BLOCKING: MPI_##NAME(__VA_ARGS__, comm); break;                                                             \
    case NONBLOCKING: MPI_I##NAME(__VA_ARGS__, comm, &work->request); break;                                         \
    default: MPI_##NAME##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &work->request); MPI_Start(&work->request);         \
    }                                                                                                                \
    break

/* The nonblocking names have their letter in lower case. */
#define MPI_IBcast MPI_Ibcast
#define MPI_IGather MPI_Igather
#define MPI_IGatherv MPI_Igatherv
#define MPI_IScatter MPI_Iscatter
#define MPI_IScatterv MPI_Iscatterv
#define MPI_IAllgather MPI_Iallgather
#define MPI_IAllgatherv MPI_Iallgatherv
#define MPI_IAlltoall MPI_Ialltoall
#define MPI_IAlltoallv MPI_Ialltoallv
#define MPI_IReduce MPI_Ireduce
#define MPI_IAllreduce MPI_Iallreduce
#define MPI_IReduce_scatter MPI_Ireduce_scatter
#define MPI_IReduce_scatter_block MPI_Ireduce_scatter_block
#define MPI_IScan MPI_Iscan
#define MPI_IExscan MPI_Iexscan

static void begin(const Round *round, Work *work) {
    MPI_Comm comm = round->comm;
    const void *give = source_of(round, work);
    void *get = work->get;
    int each = work->each, me = round->me, root = work->root, *counts = work->counts, *places = work->places;
    int elements = work->order ? each / 2 : each;
    MPI_Datatype type = work->type, u64 = MPI_UINT64_T;
    int folded[MEMBERS], same[MEMBERS], every[MEMBERS];
    for (int i = 0; i < round->size; i++)
        folded[i] = work->order ? counts[i] / 2 : counts[i], same[i] = each, every[i] = i * each;
    work->request = MPI_REQUEST_NULL;
    switch (work->what) {
    case BARRIER:
        if (work->form == NONBLOCKING) MPI_Ibarrier(comm, &work->request);
        else MPI_Barrier(comm), work->form = BLOCKING;
        break;
    case BCAST: CALL(Bcast, get, each, u64, root);
    case GATHER: CALL(Gather, give, each, u64, get, each, u64, root);
    case GATHERV: CALL(Gatherv, give, counts[me], u64, get, counts, places, u64, root);
    case SCATTER: CALL(Scatter, give, each, u64, get, each, u64, root);
    case SCATTERV: CALL(Scatterv, give, counts, places, u64, get, counts[me], u64, root);
    case ALLGATHER: CALL(Allgather, give, each, u64, get, each, u64);
    case ALLGATHERV: CALL(Allgatherv, give, counts[me], u64, get, counts, places, u64);
    case ALLTOALL: CALL(Alltoall, give, each, u64, get, each, u64);
    case ALLTOALLV:
        /* The arrays of a nonblocking or persistent form live as long as it does; those of the round do. */
        memcpy(work->counts, same, sizeof same), memcpy(work->places, every, sizeof every);
        CALL(Alltoallv, give, counts, places, u64, get, counts, places, u64);
    case REDUCE: CALL(Reduce, give, get, elements, type, work->op, root);
    case ALLREDUCE: CALL(Allreduce, give, get, elements, type, work->op);
    case REDUCE_SCATTER:
        memcpy(work->counts, folded, sizeof folded);
        CALL(Reduce_scatter, give, get, counts, type, work->op);
    case REDUCE_SCATTER_BLOCK: CALL(Reduce_scatter_block, give, get, elements, type, work->op);
    case SCAN: CALL(Scan, give, get, elements, type, work->op);
    default: CALL(Exscan, give, get, elements, type, work->op);
    }
}

static void check_work(const Round *round, Work *work) {
    for (size_t i = 0; i < work->got; i++)
        if (work->get[i] != work->expected[i])
            wrong(round, "%s of %d words, form %d, root %d, in place %d, ordered %d: word %zu is %llx, not %llx",
                  names[work->what], work->each, work->form, work->root, work->in_place, work->order, i,
                  (unsigned long long)work->get[i], (unsigned long long)work->expected[i]);
    count_done(1, (uint64_t)work->each * 8);
}

static void run_works(Round *round) {
    MPI_Op composing;
    MPI_Datatype pair;
    MPI_Op_create(compose, 0, &composing);
    MPI_Type_contiguous(2, MPI_UINT64_T, &pair);
    MPI_Type_commit(&pair);
    int count = 1 + below(&round->dice, AT_ONCE);
    Work *works = calloc(AT_ONCE, sizeof *works);
    MPI_Request requests[AT_ONCE], started[AT_ONCE];
    MPI_Status statuses[AT_ONCE];
    Dice own = own_dice(round, round->me, 4);
    for (int i = 0; i < count; i++) {
        plan_work(round, &works[i], i, composing, pair);
        prepare(round, &works[i]);
    }
    for (int i = 0; i < count; i++) {
        compute(&own);
        begin(round, &works[i]);
        started[i] = requests[i] = works[i].request;
    }
    compute(&own);
    complete(round, &own, count, requests, statuses);
    for (int i = 0; i < count; i++) {
        check_work(round, &works[i]);
        if (works[i].form == PERSISTENT) MPI_Request_free(&started[i]);
        free(works[i].give), free(works[i].get), free(works[i].expected);
    }
    free(works);
    MPI_Op_free(&composing);
    MPI_Type_free(&pair);
}

void collectives(Round *round) {
    if (round->size > MEMBERS) return;
    if (!one_in(&round->dice, 3)) return run_works(round);
    /* The same in parts of the ranks, in another order. */
    int colors = 1 + below(&round->dice, 3);
    uint64_t key = throw_dice(&round->dice);
    Round part = *round;
    int color = (int)(word(key, (uint64_t)round->me) % (uint64_t)colors);
    MPI_Comm_split(round->comm, color, (int)(word(key, (uint64_t)round->me + 5000) % 1000), &part.comm);
    MPI_Comm_rank(part.comm, &part.me);
    MPI_Comm_size(part.comm, &part.size);
    part.key = mix(part.key ^ (uint64_t)color);
    part.dice = (Dice){mix(part.key)};
    run_works(&part);
    MPI_Comm_free(&part.comm);
}
