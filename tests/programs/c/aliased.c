// Collectives whose send and receive buffers overlap are refused at every member that passes such buffers, in the
// blocking, the nonblocking and the persistent form; blocks that lie between each other are right.
//# ranks: 2 3
#include "check.h"
#define IS(class, call) CHECK_EQ(class_of(call), class)
enum { N = 8 };
static int one[64], two[64];
static int counts[N], starts[N], bytes[N], between[N], after[N];
static MPI_Aint places[N];
static MPI_Datatype types[N];
static const MPI_Comm world = MPI_COMM_WORLD;
static MPI_Request request;

// Each form for the same arguments.
#define FORMS(name, ...)                                                   \
    do {                                                                   \
        IS(MPI_ERR_BUFFER, MPI_##name(__VA_ARGS__));                       \
        IS(MPI_ERR_BUFFER, MPI_I##name##_(__VA_ARGS__));                   \
        IS(MPI_ERR_BUFFER, MPI_##name##_init_(__VA_ARGS__));               \
    } while (0)
#define MPI_IAlltoallv_(...) MPI_Ialltoallv(__VA_ARGS__, &request)
#define MPI_IAlltoallw_(...) MPI_Ialltoallw(__VA_ARGS__, &request)
#define MPI_IScan_(...) MPI_Iscan(__VA_ARGS__, &request)
#define MPI_INeighbor_allgather_(...) MPI_Ineighbor_allgather(__VA_ARGS__, &request)
#define MPI_INeighbor_allgatherv_(...) MPI_Ineighbor_allgatherv(__VA_ARGS__, &request)
#define MPI_INeighbor_alltoall_(...) MPI_Ineighbor_alltoall(__VA_ARGS__, &request)
#define MPI_INeighbor_alltoallv_(...) MPI_Ineighbor_alltoallv(__VA_ARGS__, &request)
#define MPI_INeighbor_alltoallw_(...) MPI_Ineighbor_alltoallw(__VA_ARGS__, &request)
#define MPI_Alltoallv_init_(...) MPI_Alltoallv_init(__VA_ARGS__, MPI_INFO_NULL, &request)
#define MPI_Alltoallw_init_(...) MPI_Alltoallw_init(__VA_ARGS__, MPI_INFO_NULL, &request)
#define MPI_Scan_init_(...) MPI_Scan_init(__VA_ARGS__, MPI_INFO_NULL, &request)
#define MPI_Neighbor_allgather_init_(...) MPI_Neighbor_allgather_init(__VA_ARGS__, MPI_INFO_NULL, &request)
#define MPI_Neighbor_allgatherv_init_(...) MPI_Neighbor_allgatherv_init(__VA_ARGS__, MPI_INFO_NULL, &request)
#define MPI_Neighbor_alltoall_init_(...) MPI_Neighbor_alltoall_init(__VA_ARGS__, MPI_INFO_NULL, &request)
#define MPI_Neighbor_alltoallv_init_(...) MPI_Neighbor_alltoallv_init(__VA_ARGS__, MPI_INFO_NULL, &request)
#define MPI_Neighbor_alltoallw_init_(...) MPI_Neighbor_alltoallw_init(__VA_ARGS__, MPI_INFO_NULL, &request)

static void all_to_all(void) {
    FORMS(Alltoallv, one, counts, starts, MPI_INT, one, counts, starts, MPI_INT, world);
    FORMS(Alltoallw, one, counts, bytes, types, one, counts, bytes, types, world);
    // The last byte of one is the first of the other.
    FORMS(Alltoallv, one, counts, starts, MPI_INT, one + 2 * size - 1, counts, starts, MPI_INT, world);
    FORMS(Alltoallv, one + 2 * size - 1, counts, starts, MPI_INT, one, counts, starts, MPI_INT, world);
    FORMS(Alltoallw, one, counts, bytes, types, (char *)one + 1, counts, bytes, types, world);
    // Only one block does: the last to receive with the first to send.
    after[size - 1] = 0;
    FORMS(Alltoallv, one, counts, starts, MPI_INT, one, counts, after, MPI_INT, world);
    // Data with holes, with one type at one address.
    MPI_Datatype holes;
    MPI_Type_vector(2, 1, 2, MPI_INT, &holes);
    MPI_Type_commit(&holes);
    FORMS(Alltoallv, one, counts, starts, holes, one, counts, starts, holes, world);
    IS(MPI_ERR_BUFFER, MPI_Alltoall(one, 1, holes, one, 1, holes, world));
    MPI_Type_free(&holes);
    FORMS(Scan, one, one, 4, MPI_INT, MPI_SUM, world);
    FORMS(Scan, one, one + 3, 4, MPI_INT, MPI_SUM, world);
}

// The first member of an exclusive scan has no result, so it may name anything as its place.
static void exclusive_scan(void) {
    int member = rank > 0;
    for (int i = 0; i < 4; i++) one[i] = 10 + rank, two[i] = -1;
    for (int form = 0; form < 3; form++) {
        int *place = member ? two : one;
        if (form == 0) IS(MPI_SUCCESS, MPI_Exscan(one, place, 4, MPI_INT, MPI_SUM, world));
        if (form == 1) IS(MPI_SUCCESS, MPI_Iexscan(one, place, 4, MPI_INT, MPI_SUM, world, &request));
        if (form == 2) {
            IS(MPI_SUCCESS, MPI_Exscan_init(one, place, 4, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, &request));
            MPI_Start(&request);
        }
        if (form > 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (form == 2) MPI_Request_free(&request);
        for (int i = 0; i < 4; i++) {
            CHECK_EQ(one[i], 10 + rank);
            CHECK_EQ(two[i], member ? 10 * rank + rank * (rank - 1) / 2 : -1);
            two[i] = -1;
        }
    }
    // The others have one. They take part all the same, so that the first member does not wait for ever.
    for (int far = 0; far < 4; far += 3)
        IS(member ? MPI_ERR_BUFFER : MPI_SUCCESS, MPI_Exscan(one, one + far, 4, MPI_INT, MPI_SUM, world));
    if (!member) return;
    // Persistent operations wait for nobody before they start.
    IS(MPI_ERR_BUFFER, MPI_Iexscan(one, one + 3, 4, MPI_INT, MPI_SUM, world, &request));
    IS(MPI_ERR_BUFFER, MPI_Exscan_init(one, one + 3, 4, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, &request));
}

static void neighbours(void) {
    MPI_Comm ring;
    MPI_Cart_create(world, 1, &size, &(int){1}, 0, &ring);
    MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
    FORMS(Neighbor_allgather, one, 2, MPI_INT, one, 2, MPI_INT, ring);
    FORMS(Neighbor_allgather, one + 3, 2, MPI_INT, one, 2, MPI_INT, ring);
    FORMS(Neighbor_allgatherv, one, 2, MPI_INT, one, counts, starts, MPI_INT, ring);
    FORMS(Neighbor_alltoall, one, 2, MPI_INT, one, 2, MPI_INT, ring);
    FORMS(Neighbor_alltoallv, one, counts, starts, MPI_INT, one, counts, starts, MPI_INT, ring);
    FORMS(Neighbor_alltoallw, one, counts, places, types, one, counts, places, types, ring);
    IS(MPI_SUCCESS, MPI_Neighbor_alltoall(one, 2, MPI_INT, one + 4, 2, MPI_INT, ring));
    MPI_Comm_free(&ring);
}

// Blocks to send and to receive take turns in one buffer.
static void between_each_other(void) {
    for (int i = 0; i < size; i++) one[4 * i] = one[4 * i + 1] = 10 * rank + i, one[4 * i + 2] = one[4 * i + 3] = -1;
    IS(MPI_SUCCESS, MPI_Alltoallv(one, counts, between, MPI_INT, one + 2, counts, between, MPI_INT, world));
    for (int i = 0; i < size; i++)
        for (int j = 0; j < 2; j++) {
            CHECK_EQ(one[4 * i + j], 10 * rank + i);
            CHECK_EQ(one[4 * i + 2 + j], 10 * i + rank);
        }
    // Nothing overlaps nothing, and side by side is right.
    int none[N] = {0};
    IS(MPI_SUCCESS, MPI_Alltoallv(one, none, starts, MPI_INT, one, none, starts, MPI_INT, world));
    IS(MPI_SUCCESS, MPI_Alltoallw(one, counts, bytes, types, one + 2 * size, counts, bytes, types, world));
    IS(MPI_SUCCESS, MPI_Exscan(one, one + 4, 4, MPI_INT, MPI_SUM, world));
    IS(MPI_SUCCESS, MPI_Exscan(MPI_IN_PLACE, two, 4, MPI_INT, MPI_SUM, world));
    IS(MPI_SUCCESS, MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, two, counts, starts, MPI_INT, world));
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    for (int i = 0; i < N; i++) {
        counts[i] = 2, starts[i] = 2 * i, between[i] = 4 * i, after[i] = 2 * (i + size), types[i] = MPI_INT;
        places[i] = bytes[i] = starts[i] * (int)sizeof(int);
    }
    all_to_all();
    exclusive_scan();
    neighbours();
    between_each_other();
    return finish();
}
