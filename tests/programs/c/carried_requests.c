// Gathers, scatters and all-to-alls that do not block, and persistent ones: among nodes members send for each other.
// Many are under way at once on several communicators, with blocks of no, few and many bytes, elements with gaps, and
// in place; and who gets more than there is room for is told so, and nobody else.
//# ranks: 1 6
//# abi: mpi5
//# progress: none, steal
#include "check.h"

#define AT_ONCE 9
#define ROUNDS 12
#define STARTS 2
#define COMMS 3
#define LONG 4000
// Longer than what a connection takes in before the other end reads.
#define LONGEST 140000

enum { GATHERV, SCATTERV, GATHER, SCATTER, ALLTOALLV, ALLTOALLW, ALLTOALL, KINDS };

static MPI_Comm comms[COMMS];
static MPI_Datatype spaced;

// An operation: its blocks hold so many numbers, of which each takes `step` places.
typedef struct {
    MPI_Comm comm;
    int seed, kind, root, in_place, step, me, members;
    int *sent, *got, *sent_counts, *sent_starts, *got_counts, *got_starts;
    MPI_Datatype type, *types;
    MPI_Request request;
} operation;

static unsigned mixed(unsigned a, unsigned b, unsigned c) {
    unsigned value = a * 2654435761u + b * 40503u + c * 9973u + 77u;
    value ^= value >> 15;
    value *= 2246822519u;
    return value ^ value >> 13;
}

// Numbers in a block: as many both ways, and all alike where MPI demands it.
static int count_of(const operation *it, int from, int to) {
    int is_equal = it->kind == GATHER || it->kind == SCATTER || it->kind == ALLTOALL;
    unsigned low = from < to ? from : to, high = from < to ? to : from;
    unsigned value = is_equal ? mixed(it->seed, 0, 0) : mixed(it->seed, low, high);
    if (it->seed < 0) return LONGEST;
    switch (it->seed % 5) {
    case 0: return value % 4;
    case 1: return value % 3 ? value % 60 : LONG + value % 100;
    case 2: return 2046 + value % 5;
    case 3: return value % 5 ? LONG : 0;
    default: return value % 2500;
    }
}

static int number(const operation *it, int from, int to, int at) {
    return (int)mixed(it->seed * 31 + from, to, at);
}

static int is_rooted(const operation *it) { return it->kind <= SCATTER; }

// Fills what is sent, or what goes from a member in place, and clears what comes.
static void fill(operation *it) {
    int out = 0, in = 0;
    for (int other = 0; other < it->members; other++) {
        int count = count_of(it, it->me, other);
        it->sent_counts[other] = it->got_counts[other] = count;
        it->sent_starts[other] = it->got_starts[other] = it->kind == ALLTOALLW ? 4 * out : out / it->step;
        for (int at = 0; at < count * it->step; at++) {
            int is_gap = at % it->step != 0, own = is_gap ? -5 : number(it, it->me, other, at / it->step);
            it->sent[out++] = own;
            it->got[in++] = it->in_place && !is_rooted(it) && !is_gap ? own : -7;
        }
        for (int gap = 0; gap < (it->kind == GATHER || it->kind == SCATTER || it->kind == ALLTOALL ? 0 : 2); gap++)
            out++, it->got[in++] = -7;
    }
    // A root's own block in place lies where it belongs.
    if (it->in_place && it->me == it->root && (it->kind == GATHER || it->kind == GATHERV))
        for (int at = 0; at < it->got_counts[it->me]; at++)
            it->got[it->got_starts[it->me] * it->step + at * it->step] = number(it, it->me, it->me, at);
}

static void check_block(const operation *it, int from, const int *block) {
    for (int at = 0; at < count_of(it, from, it->me) * it->step; at++)
        CHECK_EQ(block[at], at % it->step ? -7 : number(it, from, it->me, at / it->step));
}

static void check(const operation *it) {
    int in_place = it->in_place && it->me == it->root;
    if (it->kind == SCATTER || it->kind == SCATTERV) {
        if (!in_place) check_block(it, it->root, it->got);
    } else if (it->me == it->root || !is_rooted(it)) {
        for (int from = 0; from < it->members; from++)
            check_block(it, from, it->got + it->got_starts[from] * (it->kind == ALLTOALLW ? 1 : 4 * it->step) / 4);
    }
}

// One that begins at once, or a persistent one.
static void make(operation *it, int is_persistent) {
    int root = it->root, own = count_of(it, it->me, root), all = it->in_place && (it->me == root || !is_rooted(it));
    void *sent = all ? MPI_IN_PLACE : (void *)it->sent, *got = it->got;
    int *to = it->sent_counts, *at = it->sent_starts, *from = it->got_counts, *into = it->got_starts;
    MPI_Datatype type = it->type;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Request *request = &it->request;
    // What a member sends to the root lies where its block for the root does.
    int *mine = it->sent + at[root] * it->step;
    void *given = all ? MPI_IN_PLACE : (void *)mine, *wanted = all ? MPI_IN_PLACE : got;
#define START(call, ...)                                                     \
    (is_persistent ? MPI_##call##_init(__VA_ARGS__, it->comm, info, request) \
                   : MPI_I##call(__VA_ARGS__, it->comm, request))
#define MPI_IGather MPI_Igather
#define MPI_IGatherv MPI_Igatherv
#define MPI_IScatter MPI_Iscatter
#define MPI_IScatterv MPI_Iscatterv
#define MPI_IAlltoall MPI_Ialltoall
#define MPI_IAlltoallv MPI_Ialltoallv
#define MPI_IAlltoallw MPI_Ialltoallw
    switch (it->kind) {
    case GATHERV: START(Gatherv, given, own, type, got, from, into, type, root); break;
    case GATHER: START(Gather, given, own, type, got, own, type, root); break;
    case SCATTERV: START(Scatterv, it->sent, to, at, type, wanted, own, type, root); break;
    case SCATTER: START(Scatter, it->sent, own, type, wanted, own, type, root); break;
    case ALLTOALLV: START(Alltoallv, sent, to, at, type, got, from, into, type); break;
    case ALLTOALLW: START(Alltoallw, sent, to, at, it->types, got, from, into, it->types); break;
    default: START(Alltoall, sent, own, type, got, own, type);
    }
}

static void open_up(operation *it, int longest) {
    MPI_Comm_rank(it->comm, &it->me);
    MPI_Comm_size(it->comm, &it->members);
    it->root %= it->members;
    it->type = it->step == 2 ? spaced : MPI_INT;
    size_t room = (size_t)it->members * (it->step * longest + 2) * sizeof(int);
    it->sent = malloc(room);
    it->got = malloc(room);
    it->sent_counts = calloc(4 * (size_t)it->members, sizeof(int));
    it->sent_starts = it->sent_counts + it->members;
    it->got_counts = it->sent_starts + it->members;
    it->got_starts = it->got_counts + it->members;
    it->types = malloc((size_t)it->members * sizeof *it->types);
    for (int other = 0; other < it->members; other++) it->types[other] = it->type;
}

static void draw(operation *it, int round, int turn) {
    unsigned value = mixed(round, turn, 4711);
    *it = (operation){.comm = comms[value % COMMS],
                      .seed = value / 8 % 1000,
                      .kind = (round * AT_ONCE + turn) % KINDS,
                      .root = value / 16 % 1000,
                      .in_place = value / 64 % 3 == 0,
                      .step = value / 256 % 3 == 0 ? 2 : 1};
    open_up(it, LONG + 100);
}

static void let_go(operation *it) {
    free(it->sent);
    free(it->got);
    free(it->sent_counts);
    free(it->types);
}

static void many(int round) {
    operation all[AT_ONCE];
    MPI_Request requests[AT_ONCE];
    int is_persistent = round % 3 == 2;
    for (int turn = 0; turn < AT_ONCE; turn++) {
        draw(&all[turn], round, turn);
        fill(&all[turn]);
        make(&all[turn], is_persistent);
        requests[turn] = all[turn].request;
    }
    for (int start = 0; start < (is_persistent ? STARTS : 1); start++) {
        if (is_persistent) {
            for (int turn = 0; turn < AT_ONCE; turn++) fill(&all[turn]);
            // Each member begins them in an order of its own.
            for (int turn = 0; turn < AT_ONCE; turn++) MPI_Start(&requests[(turn + rank + start) % AT_ONCE]);
        }
        MPI_Waitall(AT_ONCE, requests, MPI_STATUSES_IGNORE);
        for (int turn = 0; turn < AT_ONCE; turn++) check(&all[turn]);
    }
    for (int turn = 0; turn < AT_ONCE; turn++) {
        if (is_persistent) MPI_Request_free(&requests[turn]);
        let_go(&all[turn]);
    }
}

// Blocks that both ends send at once, and that are read only when both know of them.
static void longest(int kind) {
    operation it = {.comm = MPI_COMM_WORLD, .seed = -1, .kind = kind, .root = size - 1, .step = 1};
    open_up(&it, LONGEST);
    fill(&it);
    make(&it, 0);
    MPI_Wait(&it.request, MPI_STATUS_IGNORE);
    check(&it);
    let_go(&it);
}

// The block between the root and one member has more bytes than there is room for.
static void too_long(int root, int odd, int bytes, int is_gather) {
    char *sent = calloc(size, bytes + 1), *got = malloc((size_t)size * (bytes + 1));
    int *counts = malloc(2 * (size_t)size * sizeof *counts), *starts = counts + size;
    MPI_Request request;
    memset(got, 9, (size_t)size * (bytes + 1));
    for (int other = 0; other < size; other++) {
        counts[other] = bytes + (!is_gather && other == odd) - (is_gather && other == odd);
        starts[other] = other * (bytes + 1);
    }
    if (is_gather)
        MPI_Igatherv(sent, bytes, MPI_BYTE, got, counts, starts, MPI_BYTE, root, MPI_COMM_WORLD, &request);
    else
        MPI_Iscatterv(sent, counts, starts, MPI_BYTE, got, bytes, MPI_BYTE, root, MPI_COMM_WORLD, &request);
    int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == (is_gather ? root : odd))
        CHECK_EQ(class_of(code), MPI_ERR_TRUNCATE);
    else
        CHECK_EQ(code, MPI_SUCCESS);
    if (!is_gather && rank != odd)
        for (int at = 0; at < bytes; at++) CHECK_EQ(got[at], 0);
    free(sent);
    free(got);
    free(counts);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spaced);
    MPI_Type_commit(&spaced);
    comms[0] = MPI_COMM_WORLD;
    // Every other member comes first; and all but the last one, which has itself.
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank % 2 * size - rank, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, size > 1 && rank == size - 1, rank, &comms[2]);
    for (int round = 0; round < ROUNDS; round++) many(round);
    longest(GATHERV);
    longest(SCATTER);
    longest(ALLTOALLV);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int lengths[] = {1, 100, 8192, 8193, 20000};
    for (int turn = 0; turn < 10; turn++)
        for (int is_gather = 0; is_gather < 2; is_gather++)
            too_long(turn % size, (turn * 5 + 2) % size, lengths[turn / 2], is_gather);
    MPI_Comm_free(&comms[1]);
    MPI_Comm_free(&comms[2]);
    MPI_Type_free(&spaced);
    return finish();
}
