// Nonblocking collectives whose blocks have any length, many under way at once: most give little and some give much,
// in place or not, also of elements with gaps, on two communicators, ended in any order by MPI_Wait, MPI_Test and the
// like.
//# ranks: 1 2 3 6
#include "check.h"

enum { MOST = 6, MANY = 12, ROUNDS = 150, KINDS = 5 };
enum { GATHERV, SCATTERV, ALLGATHERV, ALLTOALLV, ALLTOALLW };

// The same at all ranks, and one of the rank's own.
static unsigned common = 12345, own;

static unsigned below(unsigned *state, unsigned bound) {
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % bound;
}

static int length(void) {
    static const int lengths[] = {0, 1, 2, 3, 10, 11, 20, 60, 200, 1023, 1024, 1025, 9000, 40000};
    return lengths[below(&common, below(&common, 25) == 0 ? 14 : 12)];
}

static int value(int from, int number, int to, int at) { return from * 1000003 + number * 131 + to * 17 + at; }

struct side {
    int counts[MOST], places[MOST], stride, *data, end;
    MPI_Datatype type, types[MOST];
};

static MPI_Datatype spaced; // an int, and a gap of one

// Blocks with an element between each two, in the order of their members or the opposite one. Of MPI_Alltoallw places
// are in bytes.
static void lay_out(struct side *side, int members, int has_gaps, int swapped, int in_bytes) {
    side->stride = has_gaps ? 2 : 1;
    side->type = has_gaps ? spaced : MPI_INT;
    side->end = 1;
    for (int i = 0; i < members; i++) {
        int member = swapped ? members - 1 - i : i;
        side->places[member] = side->end * (in_bytes ? (int)sizeof(int) * side->stride : 1);
        side->types[member] = side->type;
        side->end += side->counts[member] + 1;
    }
    side->data = malloc(sizeof(int) * side->end * side->stride);
    for (int i = 0; i < side->end * side->stride; i++) side->data[i] = -1;
}

static int *block(struct side *side, int member, int in_bytes) {
    int place = side->places[member];
    return side->data + (in_bytes ? place / (int)sizeof(int) : place * side->stride);
}

static void fill(struct side *side, int slot, int from, int number, int to, int in_bytes) {
    int *first = block(side, slot, in_bytes);
    for (int at = 0; at < side->counts[slot]; at++) first[at * side->stride] = value(from, number, to, at);
}

struct operation {
    int kind, root, number, in_place, me, members, in_bytes;
    struct side give, take;
};

static void prepare(struct operation *it, int number, int me, int members) {
    int table[MOST][MOST], kind = below(&common, KINDS), root = below(&common, members);
    for (int from = 0; from < MOST; from++) {
        int same = length();
        for (int to = 0; to < MOST; to++) table[from][to] = kind >= ALLTOALLV ? length() : same;
    }
    *it = (struct operation){.kind = kind, .root = root, .number = number, .me = me, .members = members};
    it->in_bytes = kind == ALLTOALLW;
    it->in_place = kind < ALLTOALLV && below(&common, 4) == 0;
    // Of a scatter the table says what its root gives to each; each takes one block.
    for (int member = 0; member < members; member++) {
        it->give.counts[member] = kind == SCATTERV ? table[member][0] : table[me][member];
        it->take.counts[member] = kind == SCATTERV ? table[me][0] : table[member][me];
    }
    int gives_gaps = below(&own, 4) == 0, takes_gaps = below(&own, 6) == 0;
    lay_out(&it->give, members, gives_gaps, below(&own, 2), it->in_bytes);
    lay_out(&it->take, members, takes_gaps, below(&own, 2), it->in_bytes);
    for (int to = 0; to < members; to++) {
        int seen = kind >= ALLTOALLV || kind == SCATTERV ? to : 0;
        fill(&it->give, to, me, number, seen, it->in_bytes);
    }
    if (it->in_place && kind != SCATTERV) fill(&it->take, me, me, number, 0, 0);
}

static void begin(struct operation *it, MPI_Comm comm, MPI_Request *request) {
    struct side *give = &it->give, *take = &it->take;
    int is_root = it->me == it->root;
    // A gather takes block 0 of what a member has: its first one.
    void *first = block(give, 0, 0), *room = block(take, 0, 0);
    switch (it->kind) {
    case GATHERV:
        MPI_Igatherv(it->in_place && is_root ? MPI_IN_PLACE : first, give->counts[0], give->type, take->data,
                     take->counts, take->places, take->type, it->root, comm, request);
        break;
    case SCATTERV:
        MPI_Iscatterv(give->data, give->counts, give->places, give->type, it->in_place && is_root ? MPI_IN_PLACE : room,
                      take->counts[0], take->type, it->root, comm, request);
        break;
    case ALLGATHERV:
        MPI_Iallgatherv(it->in_place ? MPI_IN_PLACE : first, give->counts[0], give->type, take->data, take->counts,
                        take->places, take->type, comm, request);
        break;
    case ALLTOALLV:
        MPI_Ialltoallv(give->data, give->counts, give->places, give->type, take->data, take->counts, take->places,
                       take->type, comm, request);
        break;
    case ALLTOALLW:
        MPI_Ialltoallw(give->data, give->counts, give->places, give->types, take->data, take->counts, take->places,
                       take->types, comm, request);
        break;
    }
}

static void check(struct operation *it) {
    struct side expected = it->take;
    int all = it->take.end * it->take.stride, *found = it->take.data;
    expected.data = malloc(sizeof(int) * all);
    for (int i = 0; i < all; i++) expected.data[i] = -1;
    for (int from = 0; from < it->members; from++) {
        int is_root = it->me == it->root;
        if (it->kind == SCATTERV) {
            if (from == 0 && !(is_root && it->in_place)) fill(&expected, 0, it->root, it->number, it->me, 0);
        } else if (it->kind != GATHERV || is_root) {
            fill(&expected, from, from, it->number, it->kind >= ALLTOALLV ? it->me : 0, it->in_bytes);
        } else if (from == it->me && it->in_place) {
            fill(&expected, from, from, it->number, 0, 0);
        }
    }
    for (int i = 0; i < all; i++) CHECK_EQ(found[i], expected.data[i]);
    free(expected.data), free(found), free(it->give.data);
}

static void end_all(MPI_Request *requests, int many) {
    int left = many, done, which[MANY];
    switch (below(&own, 4)) {
    case 0: MPI_Waitall(many, requests, MPI_STATUSES_IGNORE); break;
    case 1:
        for (int i = many - 1; i >= 0; i--) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        break;
    case 2:
        for (int i = 0; i < many; i++)
            do MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
            while (!done);
        break;
    default:
        while (left > 0) {
            MPI_Waitsome(many, requests, &done, which, MPI_STATUSES_IGNORE);
            left -= done;
        }
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    own = 999u + rank;
    MPI_Datatype one = MPI_INT;
    MPI_Type_create_resized(one, 0, 2 * sizeof(int), &spaced);
    MPI_Type_commit(&spaced);
    MPI_Comm other;
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &other);
    int members = size < MOST ? size : MOST, me[2] = {rank, size - 1 - rank};
    MPI_Comm comms[2] = {MPI_COMM_WORLD, other};
    for (int round = 0; round < ROUNDS; round++) {
        struct operation all[MANY];
        MPI_Request requests[MANY];
        int many = 1 + below(&common, MANY);
        for (int i = 0; i < many; i++) {
            int which = below(&common, 2);
            prepare(&all[i], round * MANY + i, me[which], members);
            begin(&all[i], comms[which], &requests[i]);
        }
        end_all(requests, many);
        for (int i = 0; i < many; i++) check(&all[i]);
    }
    MPI_Comm_free(&other);
    MPI_Type_free(&spaced);
    return finish();
}
