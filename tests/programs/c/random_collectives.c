// Random collectives on random communicators, with random roots, counts, types, operations and places. The whole
// receive memory is compared with a reference that each member computes itself, and with what the blocking form
// left there: the nonblocking form and two starts of the persistent one agree with it bit for bit. Sums of doubles
// depend on their order, which among nodes is that of the ranks only with COHORT_REDUCE_ORDER=ranks. The last line
// is a digest of all results, the same wherever the ranks are if no order depends on that.
//# ranks: 3 8
//# abi: mpi5
//# progress: all
//# timeout: 60
#include "check.h"
#include <stdint.h>
#include <unistd.h>

#define COMMUNICATORS 60
#define TRIALS 10
#define MEMBERS_MAX 16
#define UNITS_MAX 3
#define MARGIN 64
#define PRIME 10007

enum { BARRIER, BCAST, GATHER, SCATTER, ALLGATHER, ALLTOALL, ALLTOALLV, ALLTOALLW, REDUCE, ALLREDUCE, REDUCE_SCATTER,
       REDUCE_SCATTER_BLOCK, SCAN, EXSCAN, KINDS };
enum { BLOCKING, NONBLOCKING, PERSISTENT };

/* A layout of a few ints: where each lies, and the distance from one element to the next. */
typedef struct {
    MPI_Datatype handle;
    MPI_Aint at[UNITS_MAX], extent;
} Type;

/* A member's memory for one side of an operation: a block for each member, or a single one. */
typedef struct {
    char *memory;
    size_t bytes;
    const Type *types[MEMBERS_MAX];
    MPI_Datatype handles[MEMBERS_MAX];
    int counts[MEMBERS_MAX], places[MEMBERS_MAX];
    MPI_Aint starts[MEMBERS_MAX]; /* of each block, in bytes behind the margin */
} Side;

/* One operation at one member. `varying`: the blocks have counts and places of their own. */
typedef struct {
    int kind, root, in_place, varying, units;
    int counts[MEMBERS_MAX], total;
    uint64_t key;
    MPI_Datatype element;
    MPI_Op op;
    Side from, to;
} Trial;

static MPI_Comm comm;
static int me, members, order_is_known;
static uint64_t digest;
static Type types[UNITS_MAX + 1][3];
static MPI_Op composing;

static uint64_t mix(uint64_t value) {
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

static int below(uint64_t *seed, int limit) {
    *seed += 0x9e3779b97f4a7c15u;
    return (int)(mix(*seed) % (uint64_t)limit);
}

/* What a member sends to another one at a place. */
static int word(const Trial *trial, int source, int destination, int at) {
    return (int)mix(trial->key ^ ((uint64_t)source << 40 | (uint64_t)destination << 32 | (uint64_t)at));
}

static void make_types(void) {
    for (int units = 1; units <= UNITS_MAX; units++) {
        Type *made = types[units];
        MPI_Type_contiguous(units, MPI_INT, &made[0].handle);
        MPI_Type_vector(units, 1, 3, MPI_INT, &made[1].handle);
        MPI_Type_create_resized(made[0].handle, -8, 4 * units + 20, &made[2].handle);
        made[0].extent = 4 * units, made[1].extent = 12 * units - 8, made[2].extent = 4 * units + 20;
        for (int layout = 0; layout < 3; layout++) {
            for (int unit = 0; unit < units; unit++) made[layout].at[unit] = (layout == 1 ? 12 : 4) * unit;
            MPI_Type_commit(&made[layout].handle);
        }
    }
}

static void free_types(void) {
    for (int units = 1; units <= UNITS_MAX; units++)
        for (int layout = 0; layout < 3; layout++) MPI_Type_free(&types[units][layout].handle);
}

/* The maps x -> a x + b modulo a prime, as pairs (a, b): their composition does not commute. */
static void compose(int first[2], const int second[2]) {
    int64_t a = first[0], b = first[1];
    first[0] = (int)(a * second[0] % PRIME);
    first[1] = (int)((a * second[1] + b) % PRIME);
}

static void composed(void *left, void *right, int *count, MPI_Datatype *handle) {
    const Type *type = types[2];
    while (type->handle != *handle) type++;
    CHECK(type < types[2] + 3);
    for (int i = 0; i < *count; i++) {
        char *l = (char *)left + i * type->extent, *r = (char *)right + i * type->extent;
        int first[2], second[2];
        for (int unit = 0; unit < 2; unit++) {
            memcpy(&first[unit], l + type->at[unit], sizeof(int));
            memcpy(&second[unit], r + type->at[unit], sizeof(int));
        }
        compose(first, second);
        for (int unit = 0; unit < 2; unit++) memcpy(r + type->at[unit], &first[unit], sizeof(int));
    }
}

static void allocate(Side *side, MPI_Aint bytes) {
    side->bytes = (size_t)bytes + 2 * MARGIN;
    side->memory = malloc(side->bytes);
    memset(side->memory, 0xa5, side->bytes);
}

/* Lays out blocks of `counts[i]` elements; with `scattered` at places of their own, and with `mixed` in types of their
   own. */
static void lay_out(Side *side, int blocks, const int *counts, int units, int scattered, int mixed, uint64_t *seed) {
    const Type *type = &types[units][below(seed, 3)];
    MPI_Aint end = 0;
    int place = 0;
    for (int i = 0; i < blocks; i++) {
        if (mixed) type = &types[units][below(seed, 3)];
        if (scattered) place += below(seed, 3);
        side->types[i] = type, side->handles[i] = type->handle, side->counts[i] = counts[i];
        side->starts[i] = mixed ? end + 8 : place * type->extent;
        side->places[i] = mixed ? (int)side->starts[i] : place;
        place += counts[i];
        end = side->starts[i] + counts[i] * type->extent;
    }
    allocate(side, end);
}

static char *base(const Side *side) { return side->memory + MARGIN; }

/* Fills a block with what `source` sends to `destination`, in an image of the side's memory. */
static void fill(const Trial *trial, const Side *side, char *image, int block, int source, int destination) {
    const Type *type = side->types[block];
    for (int i = 0; i < side->counts[block]; i++)
        for (int unit = 0; unit < trial->units; unit++) {
            int value = word(trial, source, destination, i * trial->units + unit);
            char *element = image + MARGIN + side->starts[block] + i * type->extent;
            memcpy(element + type->at[unit], &value, sizeof value);
        }
}

static int is_reduction(int kind) { return kind >= REDUCE; }

/* The element of a number's operand; small enough that sums and products of all fit in 64 bits. */
static int64_t operand(const Trial *trial, int member, int at) {
    uint64_t random = mix(trial->key ^ ((uint64_t)member << 32 | (uint64_t)at));
    return trial->op == MPI_PROD ? (int64_t)(random % 3) + 1 : (int64_t)(random % 100);
}

static double fraction(const Trial *trial, int member, int at) { return (double)operand(trial, member, at) / 7; }

static int64_t combine(MPI_Op op, int64_t left, int64_t right) {
    if (op == MPI_SUM) return left + right;
    if (op == MPI_PROD) return left * right;
    if (op == MPI_MAX) return left > right ? left : right;
    if (op == MPI_MIN) return left < right ? left : right;
    if (op == MPI_BAND) return left & right;
    if (op == MPI_BXOR) return left ^ right;
    return left || right;
}

/* Writes element `at` of the fold of the members' operands from `first` to `last`. */
static void folded(const Trial *trial, const Side *side, char *image, int index, int at, int first, int last) {
    char *place = image + MARGIN + index * side->types[0]->extent;
    if (trial->op == composing) {
        int sum[2] = {1, 0};
        for (int member = first; member <= last; member++) {
            int next[2] = {operand(trial, member, 2 * at) + 2, operand(trial, member, 2 * at + 1)};
            compose(sum, next);
        }
        for (int unit = 0; unit < 2; unit++) memcpy(place + side->types[0]->at[unit], &sum[unit], sizeof(int));
        return;
    }
    if (trial->element == MPI_DOUBLE) {
        double sum = fraction(trial, first, at);
        for (int member = first + 1; member <= last; member++) {
            double next = fraction(trial, member, at);
            sum = trial->op == MPI_SUM ? sum + next : (trial->op == MPI_MAX) == (next > sum) ? next : sum;
        }
        memcpy(place, &sum, sizeof sum);
        return;
    }
    int64_t sum = operand(trial, first, at);
    for (int member = first + 1; member <= last; member++)
        sum = combine(trial->op, sum, operand(trial, member, at));
    if (trial->element == MPI_INT64_T) memcpy(place, &sum, 8);
    else *(unsigned char *)place = (unsigned char)sum;
}

static void fold_range(const Trial *trial, char *image, int start, int count, int first, int last) {
    for (int i = 0; i < count; i++) folded(trial, &trial->to, image, i, start + i, first, last);
}

/* An operation with one of the types that it takes, and buffers for it. */
static void make_reduction(Trial *trial, uint64_t *common) {
    static Type numbers[3] = {{.extent = 8}, {.extent = 8}, {.extent = 1}};
    const MPI_Datatype elements[] = {MPI_DOUBLE, MPI_INT64_T, MPI_UNSIGNED_CHAR};
    const MPI_Op operations[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_PROD, MPI_BAND, MPI_BXOR, MPI_LOR};
    int which = below(common, 4);
    const Type *type = which < 3 ? &numbers[which] : &types[2][below(common, 3)];
    trial->element = which < 3 ? elements[which] : type->handle;
    trial->op = which < 3 ? operations[below(common, which == 0 ? 3 : 7)] : composing;
    int scatters = trial->kind == REDUCE_SCATTER || trial->kind == REDUCE_SCATTER_BLOCK;
    for (int i = 0; i < (scatters ? members : 1); i++) trial->total += trial->counts[i];
    Side *sides[] = {&trial->from, &trial->to};
    for (int i = 0; i < 2; i++) {
        sides[i]->types[0] = type;
        allocate(sides[i], trial->total * type->extent);
    }
    trial->in_place = trial->in_place && (trial->kind != REDUCE || me == trial->root);
    Side *side = trial->in_place ? &trial->to : &trial->from;
    for (int i = 0; i < trial->total; i++) folded(trial, side, side->memory, i, i, me, me);
}

static void make_moves(Trial *trial, uint64_t *own) {
    int kind = trial->kind, is_root = me == trial->root, to_all = kind >= ALLTOALL, mixed = kind == ALLTOALLW;
    int sends_list = to_all || (kind == SCATTER && is_root);
    int receives_list = to_all || kind == ALLGATHER || (kind == GATHER && is_root);
    int sends = sends_list ? members : 1, receives = receives_list ? members : 1, varying = trial->varying;
    int counts[MEMBERS_MAX] = {0}, *one = &trial->counts[kind == BCAST ? 0 : me];
    /* Two members of an alltoall exchange equally much. */
    for (int i = 0; i < members; i++) counts[i] = to_all ? (trial->counts[i] + *one) / 2 : trial->counts[i];
    Side *from = &trial->from, *to = &trial->to;
    lay_out(from, sends, sends_list ? counts : one, trial->units, varying && sends_list, mixed, own);
    lay_out(to, receives, receives_list ? counts : one, trial->units, varying && receives_list, mixed, own);
    if ((kind == GATHER || kind == SCATTER) && !is_root) trial->in_place = 0;
    for (int i = 0; i < sends; i++) fill(trial, from, from->memory, i, me, sends_list ? i : 0);
    if (kind == BCAST && is_root) fill(trial, to, to->memory, 0, me, 0);
    if (trial->in_place && (kind == GATHER || kind == ALLGATHER)) fill(trial, to, to->memory, me, me, 0);
    for (int i = 0; i < members && trial->in_place && to_all; i++) fill(trial, to, to->memory, i, me, i);
}

/* What the receive memory should hold in the end. */
static char *expected(const Trial *trial) {
    int n = members, kind = trial->kind, is_root = me == trial->root, start = 0;
    const Side *to = &trial->to;
    char *image = malloc(to->bytes);
    memcpy(image, to->memory, to->bytes);
    for (int i = 0; i < me; i++) start += trial->counts[i];
    switch (kind) {
    case BCAST: fill(trial, to, image, 0, trial->root, 0); break;
    case GATHER:
        for (int i = 0; i < n && is_root; i++) fill(trial, to, image, i, i, 0);
        break;
    case SCATTER:
        if (!trial->in_place) fill(trial, to, image, 0, trial->root, me);
        break;
    case ALLGATHER:
        for (int i = 0; i < n; i++) fill(trial, to, image, i, i, 0);
        break;
    case ALLTOALL:
    case ALLTOALLV:
    case ALLTOALLW:
        for (int i = 0; i < n; i++) fill(trial, to, image, i, i, me);
        break;
    case REDUCE:
        if (is_root) fold_range(trial, image, 0, trial->counts[0], 0, n - 1);
        break;
    case ALLREDUCE: fold_range(trial, image, 0, trial->counts[0], 0, n - 1); break;
    case REDUCE_SCATTER:
    case REDUCE_SCATTER_BLOCK: fold_range(trial, image, start, trial->counts[me], 0, n - 1); break;
    case SCAN: fold_range(trial, image, 0, trial->counts[0], 0, me); break;
    case EXSCAN:
        if (me > 0) fold_range(trial, image, 0, trial->counts[0], 0, me - 1);
        break;
    }
    return image;
}

/* Calls one form of an operation. */
#define FORM(name, lower, ...)                                                                       \
    (form == BLOCKING      ? MPI_##name(__VA_ARGS__, comm)                                           \
     : form == NONBLOCKING ? MPI_I##lower(__VA_ARGS__, comm, request)                                \
                           : MPI_##name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, request))

static void reduce(const Trial *it, int form, MPI_Request *request) {
    void *in = it->in_place ? MPI_IN_PLACE : base(&it->from), *out = base(&it->to);
    int count = it->total, root = it->root;
    switch (it->kind) {
    case REDUCE: FORM(Reduce, reduce, in, out, count, it->element, it->op, root); break;
    case ALLREDUCE: FORM(Allreduce, allreduce, in, out, count, it->element, it->op); break;
    case REDUCE_SCATTER: FORM(Reduce_scatter, reduce_scatter, in, out, it->counts, it->element, it->op); break;
    case REDUCE_SCATTER_BLOCK:
        FORM(Reduce_scatter_block, reduce_scatter_block, in, out, it->counts[0], it->element, it->op);
        break;
    case SCAN: FORM(Scan, scan, in, out, count, it->element, it->op); break;
    case EXSCAN: FORM(Exscan, exscan, in, out, count, it->element, it->op); break;
    }
}

static void gather_or_scatter(const Trial *it, int form, MPI_Request *request) {
    const Side *from = &it->from, *to = &it->to;
    void *in = base(from), *out = base(to);
    MPI_Datatype in_type = from->handles[0], out_type = to->handles[0];
    int in_count = from->counts[0], out_count = to->counts[0], root = it->root;
    if (it->kind == GATHER) {
        if (it->in_place) in = MPI_IN_PLACE;
        if (it->varying)
            FORM(Gatherv, gatherv, in, in_count, in_type, out, to->counts, to->places, out_type, root);
        else
            FORM(Gather, gather, in, in_count, in_type, out, out_count, out_type, root);
        return;
    }
    if (it->in_place) out = MPI_IN_PLACE;
    if (it->varying)
        FORM(Scatterv, scatterv, in, from->counts, from->places, in_type, out, out_count, out_type, root);
    else
        FORM(Scatter, scatter, in, in_count, in_type, out, out_count, out_type, root);
}

static void call(const Trial *it, int form, MPI_Request *request) {
    const Side *from = &it->from, *to = &it->to;
    void *in = it->in_place ? MPI_IN_PLACE : base(from), *out = base(to);
    MPI_Datatype in_type = from->handles[0], out_type = to->handles[0];
    int in_count = from->counts[0], out_count = to->counts[0];
    switch (it->kind) {
    case BARRIER:
        if (form == BLOCKING) MPI_Barrier(comm);
        else if (form == NONBLOCKING) MPI_Ibarrier(comm, request);
        else MPI_Barrier_init(comm, MPI_INFO_NULL, request);
        break;
    case BCAST: FORM(Bcast, bcast, out, out_count, out_type, it->root); break;
    case GATHER:
    case SCATTER: gather_or_scatter(it, form, request); break;
    case ALLGATHER:
        if (it->varying)
            FORM(Allgatherv, allgatherv, in, in_count, in_type, out, to->counts, to->places, out_type);
        else
            FORM(Allgather, allgather, in, in_count, in_type, out, out_count, out_type);
        break;
    case ALLTOALL: FORM(Alltoall, alltoall, in, in_count, in_type, out, out_count, out_type); break;
    case ALLTOALLV:
        FORM(Alltoallv, alltoallv, in, from->counts, from->places, in_type, out, to->counts, to->places, out_type);
        break;
    case ALLTOALLW:
        FORM(Alltoallw, alltoallw, in, from->counts, from->places, from->handles, out, to->counts, to->places,
             to->handles);
        break;
    default: reduce(it, form, request);
    }
}

static Trial new_trial(uint64_t *common, uint64_t *own) {
    const int longest[] = {0, 1, 3, 20, 70, 500, 3000, 12000};
    Trial trial = {.kind = below(common, KINDS), .root = below(common, members), .units = 1 + below(common, UNITS_MAX)};
    int kind = trial.kind, limit = longest[below(common, 8)], may_vary = kind == GATHER || kind == SCATTER;
    trial.key = mix(*common);
    trial.in_place = below(common, 2) && kind != BARRIER && kind != BCAST;
    may_vary |= kind == ALLGATHER || kind == ALLTOALLV || kind == ALLTOALLW || kind == REDUCE_SCATTER;
    trial.varying = kind == ALLTOALLV || kind == ALLTOALLW || (may_vary && below(common, 2));
    if (kind >= ALLTOALL && kind <= ALLTOALLW) limit = limit < 3000 ? limit : 3000;
    for (int i = 0; i < members; i++) trial.counts[i] = trial.varying ? below(common, limit + 1) : limit;
    if (is_reduction(kind)) make_reduction(&trial, common);
    else make_moves(&trial, own);
    return trial;
}

/* Whether the result is the wanted one: to the bit, or as well as sums of doubles in another order agree. */
static int agrees(const Trial *trial, const char *wanted, size_t bytes, int to_the_bit) {
    const char *result = trial->to.memory;
    if (to_the_bit || trial->element != MPI_DOUBLE) return memcmp(result, wanted, bytes) == 0;
    for (size_t at = MARGIN; at + sizeof(double) <= bytes; at += sizeof(double)) {
        double one, other;
        memcpy(&one, result + at, sizeof one);
        memcpy(&other, wanted + at, sizeof other);
        if (memcmp(&one, &other, sizeof one) != 0 && !(one - other < 1e-9 && other - one < 1e-9)) return 0;
    }
    return 1;
}

/* Runs every form of one operation. */
static void check_trial(uint64_t *common, uint64_t *own) {
    Trial trial = new_trial(common, own);
    Side *to = &trial.to;
    char *wanted = expected(&trial), *before = malloc(to->bytes);
    /* Reduce-scatter in place leaves the rest of its buffer undefined. */
    int scatters = trial.kind == REDUCE_SCATTER || trial.kind == REDUCE_SCATTER_BLOCK;
    size_t compared = scatters ? MARGIN + (size_t)(trial.counts[me] * to->types[0]->extent) : to->bytes;
    memcpy(before, to->memory, to->bytes);
    for (int form = BLOCKING; form <= PERSISTENT; form++) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (form == PERSISTENT) call(&trial, form, &request);
        for (int start = 0; start < (form == PERSISTENT ? 2 : 1); start++) {
            memcpy(to->memory, before, to->bytes);
            if (below(own, 40) == 0) usleep(200);
            if (form == PERSISTENT) MPI_Start(&request);
            else call(&trial, form, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            if (!agrees(&trial, wanted, compared, form != BLOCKING && order_is_known)) {
                fprintf(stderr, "kind %d, form %d, root %d of %d, count %d, in place %d\n", trial.kind, form,
                        trial.root, members, trial.counts[0], trial.in_place);
                CHECK(!"the result is the expected one");
            }
        }
        if (form == PERSISTENT) MPI_Request_free(&request);
        /* What the first form left, to the bit, is what the others have to leave. */
        memcpy(wanted, to->memory, to->bytes);
    }
    for (size_t at = 0; at < compared; at++) digest = mix(digest + (unsigned char)wanted[at]);
    free(wanted), free(before), free(trial.from.memory), free(to->memory);
}

int main(int argc, char **argv) {
    MPI_Comm node;
    start(&argc, &argv);
    CHECK(size <= MEMBERS_MAX);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &members);
    MPI_Comm_free(&node);
    const char *order = getenv("COHORT_REDUCE_ORDER");
    order_is_known = members == size || (order && strcmp(order, "ranks") == 0);
    make_types();
    MPI_Op_create(composed, 0, &composing);
    uint64_t own = mix(1000 + (uint64_t)rank);
    for (int round = 0; round < COMMUNICATORS; round++) {
        uint64_t common = mix((uint64_t)round + 1);
        int groups = 1 + below(&common, 3) / 2, color = (int)(mix(common ^ (uint64_t)rank) % (uint64_t)groups);
        MPI_Comm_split(MPI_COMM_WORLD, color, below(&own, 1000), &comm);
        MPI_Comm_rank(comm, &me);
        MPI_Comm_size(comm, &members);
        common = mix(common + (uint64_t)color);
        for (int i = 0; i < TRIALS; i++) check_trial(&common, &own);
        MPI_Comm_free(&comm);
    }
    MPI_Op_free(&composing);
    free_types();
    uint64_t all;
    MPI_Reduce(&digest, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("digest %016llx\n", (unsigned long long)all);
    return finish();
}
