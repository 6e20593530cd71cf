// All-to-alls, gathers and scatters of blocks of many lengths, in one call none, short and long ones, and scans of an
// operation that does not commute: among nodes members send for each other, and each gets what it would get from each
// member itself.
//# ranks: 1 6
//# abi: mpi5
#include "check.h"

#define LONG 20000
#define PATTERNS 7
#define ELEMENTS 3000

// A map x -> scale * x + shift of numbers modulo 2^32. Composition is associative, and does not commute.
typedef struct {
    unsigned scale, shift;
} map_t;

static char *source, *target;
static int *from_counts, *from_starts, *to_counts, *to_starts;
static MPI_Datatype *types;

// Bytes of the block from one member to another, the same both ways if it is even.
static int length(int pattern, int from, int to) {
    int pair = from < to ? from * 31 + to : to * 31 + from, way = from * 7 + to * 3;
    switch (pattern) {
    case 0: return way % 5 == 0 ? 12 : 0;
    case 1: return way % 50;
    case 2: return pair % 3 == 0 ? LONG - pair % 7 : pair % 90;
    case 3: return way % 4 == 0 ? 9 : LONG + way;
    case 4: return pair % 9000;
    case 5: return 0;
    default: return LONG;
    }
}

static char byte(int pattern, int from, int to, int at) { return (char)(pattern * 101 + from * 17 + to * 5 + at * 3); }

// Blocks for all members, or from all, one behind the other; filled if they are sent.
static int lay_out(int pattern, int is_sent, char *memory, int *counts, int *starts) {
    int end = 0;
    for (int other = 0; other < size; other++) {
        int from = is_sent ? rank : other, to = is_sent ? other : rank;
        counts[other] = length(pattern, from, to);
        starts[other] = end;
        for (int at = 0; at < counts[other]; at++)
            memory[end + at] = is_sent ? byte(pattern, from, to, at) : 99;
        end += counts[other] + 3;
    }
    return end;
}

static void check_blocks(int pattern) {
    for (int from = 0; from < size; from++)
        for (int at = 0; at < to_counts[from]; at++)
            CHECK_EQ(target[to_starts[from] + at], byte(pattern, from, rank, at));
}

static void varying(int pattern) {
    for (int form = 0; form < 4; form++) {
        MPI_Request request = MPI_REQUEST_NULL;
        lay_out(pattern, 1, source, from_counts, from_starts);
        lay_out(pattern, 0, target, to_counts, to_starts);
        if (form == 0)
            MPI_Alltoallv(source, from_counts, from_starts, MPI_BYTE, target, to_counts, to_starts, MPI_CHAR,
                          MPI_COMM_WORLD);
        else if (form == 1)
            MPI_Ialltoallv(source, from_counts, from_starts, MPI_BYTE, target, to_counts, to_starts, MPI_CHAR,
                           MPI_COMM_WORLD, &request);
        else if (form == 2)
            MPI_Alltoallw(source, from_counts, from_starts, types, target, to_counts, to_starts, types, MPI_COMM_WORLD);
        else if (pattern % 2 == 0 && pattern > 0) {
            // In place: what is sent lies where what comes goes.
            lay_out(pattern, 1, target, to_counts, to_starts);
            MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_BYTE, target, to_counts, to_starts, MPI_BYTE, MPI_COMM_WORLD);
        } else
            continue;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_blocks(pattern);
    }
}

// The root's block of every member, and every member's block of the root's. Nobody waits in between.
static void rooted(int pattern) {
    for (int turn = 0; turn < 12; turn++) {
        int root = turn / 6 * (size - 1), own = length(pattern, rank, root), got = length(pattern, root, rank);
        lay_out(pattern, 1, source, from_counts, from_starts);
        lay_out(pattern, 0, target, to_counts, to_starts);
        MPI_Gatherv(source + from_starts[root], own, MPI_BYTE, target, to_counts, to_starts, MPI_BYTE, root,
                    MPI_COMM_WORLD);
        if (rank == root)
            check_blocks(pattern);
        MPI_Scatterv(source, from_counts, from_starts, MPI_BYTE, target, got, MPI_BYTE, root, MPI_COMM_WORLD);
        for (int at = 0; at < got; at++)
            CHECK_EQ(target[at], byte(pattern, root, rank, at));
    }
}

static void equal(int bytes) {
    for (int in_place = 0; in_place < 2; in_place++) {
        for (int other = 0; other < size; other++)
            for (int at = 0; at < bytes; at++) {
                source[other * bytes + at] = byte(0, rank, other, at);
                target[other * bytes + at] = in_place ? byte(0, rank, other, at) : 99;
            }
        MPI_Alltoall(in_place ? MPI_IN_PLACE : source, bytes, MPI_BYTE, target, bytes, MPI_BYTE, MPI_COMM_WORLD);
        for (int from = 0; from < size; from++)
            for (int at = 0; at < bytes; at++)
                CHECK_EQ(target[from * bytes + at], byte(0, from, rank, at));
    }
}

static void composed(void *left, void *right, int *length, MPI_Datatype *type) {
    map_t *in = left, *inout = right;
    (void)type;
    for (int i = 0; i < *length; i++) {
        inout[i].shift = in[i].scale * inout[i].shift + in[i].shift;
        inout[i].scale *= in[i].scale;
    }
}

static map_t operand(int member, int at) {
    return (map_t){2 * (unsigned)(member + at) + 3, (unsigned)(member * 5 + at)};
}

static void scans(MPI_Datatype type, MPI_Op compose, int count) {
    map_t *own = malloc(count * sizeof *own), *result = malloc(count * sizeof *result);
    for (int form = 0; form < 6; form++) {
        int in_place = form % 2, is_exclusive = form / 2 % 2;
        MPI_Request request = MPI_REQUEST_NULL;
        for (int at = 0; at < count; at++) {
            own[at] = operand(rank, at);
            result[at] = in_place ? own[at] : (map_t){7, 7};
        }
        map_t untouched = result[0];
        void *from = in_place ? MPI_IN_PLACE : (void *)own;
        if (form >= 4)
            MPI_Iscan(from, result, count, type, compose, MPI_COMM_WORLD, &request);
        else if (is_exclusive)
            MPI_Exscan(from, result, count, type, compose, MPI_COMM_WORLD);
        else
            MPI_Scan(from, result, count, type, compose, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        int last = is_exclusive ? rank - 1 : rank;
        for (int at = 0; at < count; at++) {
            map_t sum = last < 0 ? untouched : operand(last, at);
            for (int member = last - 1; member >= 0; member--) {
                map_t before = operand(member, at);
                composed(&before, &sum, &(int){1}, &type);
            }
            if (last < 0 && at > 0)
                break;
            CHECK_EQ(result[at].scale, sum.scale);
            CHECK_EQ(result[at].shift, sum.shift);
        }
    }
    free(own);
    free(result);
}

// Fills the operand, and the result's memory with something else, or in place with the operand.
static void refill(double *own, double *result, int in_place, int count) {
    for (int at = 0; at < count; at++) {
        own[at] = 0.1 * (rank + 1) + at;
        result[at] = in_place ? own[at] : -1;
    }
}

// A scan of doubles in one of three forms: a persistent one is started twice.
static void sum_before(int form, int is_exclusive, int in_place, double *own, double *result, int count) {
    void *from = in_place ? MPI_IN_PLACE : (void *)own;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Request request = MPI_REQUEST_NULL;
    refill(own, result, in_place, count);
    if (form == 0) {
        (is_exclusive ? MPI_Exscan : MPI_Scan)(from, result, count, MPI_DOUBLE, MPI_SUM, comm);
    } else if (form == 1) {
        (is_exclusive ? MPI_Iexscan : MPI_Iscan)(from, result, count, MPI_DOUBLE, MPI_SUM, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        (is_exclusive ? MPI_Exscan_init : MPI_Scan_init)(from, result, count, MPI_DOUBLE, MPI_SUM, comm,
                                                         MPI_INFO_NULL, &request);
        for (int start = 0; start < 2; start++) {
            refill(own, result, in_place, count);
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Request_free(&request);
    }
}

// Scans of a predefined operation: all forms give the same bits.
static void sums(int count) {
    double *own = malloc(count * sizeof *own), *result = malloc(count * sizeof *result);
    double *blocking = malloc(count * sizeof *blocking);
    for (int kind = 0; kind < 4; kind++) {
        int in_place = kind % 2, is_exclusive = kind / 2, terms = rank + !is_exclusive;
        sum_before(0, is_exclusive, in_place, own, blocking, count);
        for (int at = 0; at < count && terms > 0; at++) {
            double error = blocking[at] - (0.1 * terms * (terms + 1) / 2 + (double)terms * at);
            CHECK(error < 1e-6 && error > -1e-6);
        }
        for (int form = 1; form < 3; form++) {
            sum_before(form, is_exclusive, in_place, own, result, count);
            CHECK_EQ(memcmp(result, blocking, count * sizeof *result), 0);
        }
    }
    free(own);
    free(result);
    free(blocking);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    size_t room = (size_t)size * (LONG + 500);
    source = malloc(room);
    target = malloc(room);
    from_counts = calloc(4 * (size_t)size, sizeof *from_counts);
    from_starts = from_counts + size;
    to_counts = from_starts + size;
    to_starts = to_counts + size;
    types = malloc((size_t)size * sizeof *types);
    for (int other = 0; other < size; other++)
        types[other] = MPI_BYTE;
    for (int pattern = 0; pattern < PATTERNS; pattern++) {
        varying(pattern);
        rooted(pattern);
    }
    equal(5);
    equal(3000);
    equal(LONG);
    sums(1);
    sums(ELEMENTS);
    MPI_Datatype type;
    MPI_Op compose;
    MPI_Type_contiguous(2, MPI_UNSIGNED, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(composed, 0, &compose);
    scans(type, compose, 1);
    scans(type, compose, ELEMENTS);
    MPI_Op_free(&compose);
    MPI_Type_free(&type);
    return finish();
}
