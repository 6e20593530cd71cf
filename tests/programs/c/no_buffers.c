// Buffers in which MPI puts nothing may be NULL: the result of an exscan at the first member, that of a reduce-scatter
// of a member without elements, all of a neighbourhood collective without neighbours. Displacements may be addresses,
// from MPI_BOTTOM.
//# ranks: 1 2 3 4
//# abi: mpich, mpi5, openmpi
//# progress: steal, none
#include "check.h"
#define IS(class, call) CHECK_EQ(class_of(call), class)
enum { MANY = 40000 };
static const MPI_Comm world = MPI_COMM_WORLD;
static int *out, *in;

static void done(MPI_Request *request) { MPI_Wait(request, MPI_STATUS_IGNORE); }

static void again(MPI_Request *request) {
    for (int round = 0; round < 2; round++) {
        MPI_Start(request);
        done(request);
    }
    MPI_Request_free(request);
}

static void below(int count, int *result) {
    for (int i = 0; rank > 0 && i < count; i++) {
        CHECK_EQ(result[i], rank * (rank - 1) / 2 + rank * i);
        result[i] = 0;
    }
}

static void exscans(int count) {
    int *result = rank == 0 ? NULL : in;
    MPI_Request request;
    for (int i = 0; i < count; i++) out[i] = rank + i;
    IS(MPI_SUCCESS, MPI_Exscan(out, result, count, MPI_INT, MPI_SUM, world));
    below(count, result);
    IS(MPI_SUCCESS, MPI_Iexscan(out, result, count, MPI_INT, MPI_SUM, world, &request));
    done(&request);
    below(count, result);
    IS(MPI_SUCCESS, MPI_Exscan_init(out, result, count, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, &request));
    again(&request);
    below(count, result);
    // In place the first member's buffer has its operand.
    IS(MPI_ERR_BUFFER, MPI_Exscan(MPI_IN_PLACE, NULL, count, MPI_INT, MPI_SUM, world));
}

static void shared(int each, int *result) {
    for (int i = 0; rank + 1 < size && i < each; i++) {
        CHECK_EQ(result[i], size * (size - 1) / 2 + size * (rank * each + i));
        result[i] = 0;
    }
}

// The last member gets nothing.
static void reduce_scatters(int each) {
    int counts[16], *result = rank + 1 == size ? NULL : in;
    MPI_Request request;
    for (int r = 0; r < size; r++) counts[r] = r + 1 == size ? 0 : each;
    for (int i = 0; i < each * (size - 1); i++) out[i] = rank + i;
    IS(MPI_SUCCESS, MPI_Reduce_scatter(out, result, counts, MPI_INT, MPI_SUM, world));
    shared(each, result);
    IS(MPI_SUCCESS, MPI_Ireduce_scatter(out, result, counts, MPI_INT, MPI_SUM, world, &request));
    done(&request);
    shared(each, result);
    IS(MPI_SUCCESS,
       MPI_Reduce_scatter_init(out, result, counts, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, &request));
    again(&request);
    shared(each, result);
    IS(MPI_ERR_BUFFER, MPI_Reduce_scatter_block(out, NULL, 1, MPI_INT, MPI_SUM, world));
}

static void without_neighbours(void) {
    MPI_Comm alone;
    MPI_Datatype types[1] = {MPI_INT};
    MPI_Aint places[1] = {0};
    int none[1] = {0};
    MPI_Request request;
    MPI_Dist_graph_create_adjacent(world, 0, none, none, 0, none, none, MPI_INFO_NULL, 0, &alone);
    IS(MPI_SUCCESS, MPI_Neighbor_allgather(NULL, 1, MPI_INT, NULL, 1, MPI_INT, alone));
    IS(MPI_SUCCESS, MPI_Neighbor_allgatherv(NULL, 1, MPI_INT, NULL, none, none, MPI_INT, alone));
    IS(MPI_SUCCESS, MPI_Neighbor_alltoall(NULL, 1, MPI_INT, NULL, 1, MPI_INT, alone));
    IS(MPI_SUCCESS, MPI_Neighbor_alltoallv(NULL, none, none, MPI_INT, NULL, none, none, MPI_INT, alone));
    IS(MPI_SUCCESS, MPI_Neighbor_alltoallw(NULL, none, places, types, NULL, none, places, types, alone));
    IS(MPI_SUCCESS, MPI_Ineighbor_allgather(NULL, 1, MPI_INT, NULL, 1, MPI_INT, alone, &request));
    done(&request);
    IS(MPI_SUCCESS, MPI_Ineighbor_alltoall(NULL, 1, MPI_INT, NULL, 1, MPI_INT, alone, &request));
    done(&request);
    IS(MPI_SUCCESS, MPI_Neighbor_alltoall_init(NULL, 1, MPI_INT, NULL, 1, MPI_INT, alone, MPI_INFO_NULL, &request));
    again(&request);
    IS(MPI_ERR_COUNT, MPI_Neighbor_alltoall(NULL, -1, MPI_INT, NULL, 1, MPI_INT, alone));
    IS(MPI_ERR_TYPE, MPI_Neighbor_alltoall(NULL, 1, MPI_INT, NULL, 1, MPI_DATATYPE_NULL, alone));
    MPI_Comm_free(&alone);
}

// One sends and the other receives only.
static void one_way(void) {
    MPI_Comm pair;
    int from = 0, to = 1, weight = 1, value = 70 + rank, got = 0, sources = rank == 1, destinations = rank == 0;
    if (size < 2) return;
    MPI_Dist_graph_create_adjacent(world, sources, &from, &weight, destinations, &to, &weight, MPI_INFO_NULL, 0, &pair);
    int *send = rank == 0 ? &value : NULL, *receive = rank == 1 ? &got : NULL;
    IS(MPI_SUCCESS, MPI_Neighbor_alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, pair));
    CHECK_EQ(got, rank == 1 ? 70 : 0);
    got = 0;
    IS(MPI_SUCCESS, MPI_Neighbor_allgather(send, 1, MPI_INT, receive, 1, MPI_INT, pair));
    CHECK_EQ(got, rank == 1 ? 70 : 0);
    MPI_Comm_free(&pair);
}

// NULL is no place for a block, nor is what lies just behind it.
static void nowhere(void) {
    int counts[16], places[16] = {3};
    for (int r = 0; r < size; r++) counts[r] = 1;
    IS(MPI_ERR_BUFFER, MPI_Alltoallv(NULL, counts, places, MPI_INT, in, counts, places, MPI_INT, world));
    IS(MPI_ERR_BUFFER, MPI_Allgatherv(out, 1, MPI_INT, NULL, counts, places, MPI_INT, world));
}

#ifdef OPEN_MPI
static void from_bottom(void) {} // An int holds no address, and there are no other counts.
#else
// Displacements from MPI_BOTTOM count extents of the type.
static void from_bottom(void) {
    static int sent[16], received[16];
    MPI_Count counts[16];
    MPI_Aint starts[16], ends[16];
    for (int r = 0; r < size; r++) {
        sent[r] = 10 * rank + r;
        counts[r] = 1;
        MPI_Get_address(&sent[r], &starts[r]);
        MPI_Get_address(&received[r], &ends[r]);
        starts[r] /= (MPI_Aint)sizeof(int);
        ends[r] /= (MPI_Aint)sizeof(int);
    }
    IS(MPI_SUCCESS, MPI_Alltoallv_c(MPI_BOTTOM, counts, starts, MPI_INT, MPI_BOTTOM, counts, ends, MPI_INT, world));
    for (int r = 0; r < size; r++) CHECK_EQ(received[r], 10 * r + rank);
    memset(received, 0, sizeof received);
    IS(MPI_SUCCESS, MPI_Allgatherv_c(sent, 1, MPI_INT, MPI_BOTTOM, counts, ends, MPI_INT, world));
    for (int r = 0; r < size; r++) CHECK_EQ(received[r], 10 * r);
}
#endif

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    out = malloc(sizeof(int) * MANY * 4);
    in = malloc(sizeof(int) * MANY * 4);
    CHECK(out && in);
    exscans(3);
    exscans(MANY);
    reduce_scatters(3);
    reduce_scatters(MANY);
    without_neighbours();
    one_way();
    nowhere();
    from_bottom();
    return finish();
}
