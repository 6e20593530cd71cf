// Collectives between two groups: nonblocking and persistent forms give what the blocking ones give.
//# ranks: 2 3 8
#include "check.h"

#define MOST 8
#define OPERATIONS 11

// A map x -> scale * x + shift of numbers modulo 2^32. Composition is associative, and does not commute.
typedef struct {
    unsigned scale, shift;
} map_t;

enum { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };

static int members, others, here, count;
static MPI_Comm inter;
static MPI_Datatype map_type;
static MPI_Op compose;
static map_t *source, *result[OPERATIONS][FORMS];
static int counts[MOST], starts[MOST], shares[MOST], bytes[MOST], offsets[MOST];
static MPI_Datatype types[MOST];

static void composed(void *left, void *right, int *length, MPI_Datatype *type) {
    map_t *in = left, *inout = right;
    (void)type;
    for (int i = 0; i < *length; i++) {
        inout[i].shift = in[i].scale * inout[i].shift + in[i].shift;
        inout[i].scale *= in[i].scale;
    }
}

// The three forms of a call; the arguments stand before the communicator.
#define FORM(Name, Nonblocking, Persistent, ...)                                      \
    switch (form) {                                                                   \
    case BLOCKING: MPI_##Name(__VA_ARGS__, inter); break;                             \
    case NONBLOCKING: MPI_##Nonblocking(__VA_ARGS__, inter, request); break;          \
    default: MPI_##Persistent(__VA_ARGS__, inter, MPI_INFO_NULL, request);            \
    }                                                                                 \
    break

static void begin(int operation, int form, int root, MPI_Request *request) {
    map_t *to = result[operation][form];
    MPI_Datatype type = map_type;
    switch (operation) {
    case 0: FORM(Bcast, Ibcast, Bcast_init, root == MPI_ROOT ? source : to, count, type, root);
    case 1: FORM(Gather, Igather, Gather_init, source, count, type, to, count, type, root);
    case 2: FORM(Scatterv, Iscatterv, Scatterv_init, source, counts, starts, type, to, here + 1, type, root);
    case 3: FORM(Allgather, Iallgather, Allgather_init, source, count, type, to, count, type);
    case 4: FORM(Allgatherv, Iallgatherv, Allgatherv_init, source, here + 1, type, to, counts, starts, type);
    case 5: FORM(Alltoall, Ialltoall, Alltoall_init, source, count, type, to, count, type);
    case 6: FORM(Alltoallw, Ialltoallw, Alltoallw_init, source, bytes, offsets, types, to, bytes, offsets, types);
    case 7: FORM(Reduce, Ireduce, Reduce_init, source, to, count, type, compose, root);
    case 8: FORM(Allreduce, Iallreduce, Allreduce_init, source, to, count, type, compose);
    case 9: FORM(Reduce_scatter, Ireduce_scatter, Reduce_scatter_init, source, to, shares, type, compose);
    case 10:
        FORM(Reduce_scatter_block, Ireduce_scatter_block, Reduce_scatter_block_init, source, to, others * count,
             type, compose);
    }
}

// All operations at once, in each form; the persistent ones start twice, in different orders.
static void all_forms(int root) {
    MPI_Request requests[OPERATIONS + 1], barrier;
    size_t room = (size_t)members * others * count * sizeof(map_t);
    for (int operation = 0; operation < OPERATIONS; operation++)
        for (int form = 0; form < FORMS; form++) memset(result[operation][form], 0xee, room);
    for (int operation = 0; operation < OPERATIONS; operation++) begin(operation, BLOCKING, root, NULL);
    for (int operation = 0; operation < OPERATIONS; operation++)
        begin(operation, NONBLOCKING, root, &requests[operation]);
    MPI_Ibarrier(inter, &requests[OPERATIONS]);
    MPI_Waitall(OPERATIONS + 1, requests, MPI_STATUSES_IGNORE);
    for (int operation = 0; operation < OPERATIONS; operation++)
        begin(operation, PERSISTENT, root, &requests[operation]);
    MPI_Barrier_init(inter, MPI_INFO_NULL, &barrier);
    for (int round = 0; round < 2; round++) {
        MPI_Start(&barrier);
        for (int i = 0; i < OPERATIONS; i++) MPI_Start(&requests[(here + round + i) % OPERATIONS]);
        MPI_Waitall(OPERATIONS, requests, MPI_STATUSES_IGNORE);
        MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    }
    for (int operation = 0; operation < OPERATIONS; operation++) MPI_Request_free(&requests[operation]);
    MPI_Request_free(&barrier);
    for (int operation = 0; operation < OPERATIONS; operation++)
        for (int form = NONBLOCKING; form < FORMS; form++)
            if (memcmp(result[operation][form], result[operation][BLOCKING], room) != 0) {
                fprintf(stderr, "rank %d: operation %d differs in form %d\n", rank, operation, form);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
}

static void run(int length) {
    count = length;
    size_t room = (size_t)members * others * count;
    source = malloc(room * sizeof(map_t));
    for (size_t i = 0; i < room; i++) source[i] = (map_t){2 * (rank + i) + 3, 7 * rank + 5 * i + 1};
    for (int operation = 0; operation < OPERATIONS; operation++)
        for (int form = 0; form < FORMS; form++) result[operation][form] = malloc(room * sizeof(map_t));
    // Block i of those that vary has i + 1 elements; shares add up to the same in both groups.
    for (int i = 0, start = 0; i < others; start += ++i) {
        counts[i] = i + 1;
        starts[i] = start;
        bytes[i] = count;
        offsets[i] = i * count * (int)sizeof(map_t);
        types[i] = map_type;
    }
    for (int i = 0; i < members; i++) shares[i] = others * count;
    int low = rank < size / 2;
    for (int side = 0; side < 2; side++)
        for (int at = 0; at < 2; at++) {
            int root = at ? (side == low ? members : others) - 1 : 0;
            all_forms(side != low ? root : here == root ? MPI_ROOT : MPI_PROC_NULL);
        }
    for (int operation = 0; operation < OPERATIONS; operation++)
        for (int form = 0; form < FORMS; form++) free(result[operation][form]);
    free(source);
}

static void refused(void) {
    MPI_Request request = MPI_REQUEST_NULL;
    int value = 1, sum;
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    CHECK_EQ(class_of(MPI_Iscan(&value, &sum, 1, MPI_INT, MPI_SUM, inter, &request)), MPI_ERR_COMM);
    CHECK_EQ(class_of(MPI_Ibcast(&value, 1, MPI_INT, others, inter, &request)), MPI_ERR_ROOT);
    CHECK_EQ(class_of(MPI_Iallreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, inter, &request)), MPI_ERR_BUFFER);
    CHECK_EQ(class_of(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_INT, &sum, 1, MPI_INT, inter, &request)), MPI_ERR_BUFFER);
    CHECK(request == MPI_REQUEST_NULL);
}

int main(int argc, char **argv) {
    MPI_Comm half;
    start(&argc, &argv);
    int low = rank < size / 2;
    MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 7, &inter);
    MPI_Comm_size(inter, &members);
    MPI_Comm_remote_size(inter, &others);
    MPI_Comm_rank(inter, &here);
    MPI_Type_contiguous(2, MPI_UNSIGNED, &map_type);
    MPI_Type_commit(&map_type);
    MPI_Op_create(composed, 0, &compose);
    run(5);
    run(3000);
    refused();
    MPI_Op_free(&compose);
    MPI_Type_free(&map_type);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    return finish();
}
