// The blocking, the nonblocking and the persistent form of a collective refuse the same arguments, with the same class.
//# ranks: 2
#include "check.h"
#define IS(class, call) CHECK_EQ(class_of(call), class)
#define FORMS(class, comm, name, nonblocking, ...)                                   \
    do {                                                                             \
        IS(class, name(__VA_ARGS__, comm));                                          \
        IS(class, nonblocking(__VA_ARGS__, comm, &request));                         \
        IS(class, name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &request));          \
    } while (0)
static const MPI_Comm world = MPI_COMM_WORLD;
static MPI_Request request;
static int one[8], two[8], counts[2] = {1, 1}, places[2] = {0, 1}, wrong[2] = {-1, -1};

static void in_one_group(void) {
    FORMS(MPI_ERR_ROOT, world, MPI_Bcast, MPI_Ibcast, one, 1, MPI_INT, 2);
    FORMS(MPI_ERR_COUNT, world, MPI_Bcast, MPI_Ibcast, one, -1, MPI_INT, 0);
    FORMS(MPI_ERR_ROOT, world, MPI_Gather, MPI_Igather, one, 1, MPI_INT, two, 1, MPI_INT, -7);
    FORMS(MPI_ERR_BUFFER, world, MPI_Gather, MPI_Igather, one, 1, MPI_INT, one, 1, MPI_INT, rank);
    FORMS(MPI_ERR_COUNT, world, MPI_Gatherv, MPI_Igatherv, one, 1, MPI_INT, two, wrong, places, MPI_INT, rank);
    FORMS(MPI_ERR_TYPE, world, MPI_Scatter, MPI_Iscatter, one, 1, MPI_DATATYPE_NULL, two, 1, MPI_INT, rank);
    FORMS(MPI_ERR_BUFFER, world, MPI_Scatterv, MPI_Iscatterv, one, counts, places, MPI_INT, one, 1, MPI_INT, rank);
    FORMS(MPI_ERR_BUFFER, world, MPI_Allgather, MPI_Iallgather, one, 1, MPI_INT, NULL, 1, MPI_INT);
    FORMS(MPI_ERR_ARG, world, MPI_Allgatherv, MPI_Iallgatherv, one, 1, MPI_INT, two, NULL, places, MPI_INT);
    FORMS(MPI_ERR_BUFFER, world, MPI_Alltoall, MPI_Ialltoall, one, 1, MPI_INT, one, 1, MPI_INT);
    FORMS(MPI_ERR_COUNT, world, MPI_Alltoallv, MPI_Ialltoallv, one, wrong, places, MPI_INT, two, counts, places,
          MPI_INT);
    FORMS(MPI_ERR_OP, world, MPI_Reduce, MPI_Ireduce, one, two, 1, MPI_FLOAT, MPI_BAND, 0);
    FORMS(MPI_ERR_BUFFER, world, MPI_Allreduce, MPI_Iallreduce, one, one, 1, MPI_INT, MPI_SUM);
    FORMS(MPI_ERR_BUFFER, world, MPI_Scan, MPI_Iscan, NULL, two, 1, MPI_INT, MPI_SUM);
    FORMS(MPI_ERR_OP, world, MPI_Exscan, MPI_Iexscan, one, two, 1, MPI_INT, MPI_OP_NULL);
    FORMS(MPI_ERR_COUNT, world, MPI_Reduce_scatter, MPI_Ireduce_scatter, one, two, wrong, MPI_INT, MPI_SUM);
    FORMS(MPI_ERR_COUNT, world, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, one, two, -1, MPI_INT, MPI_SUM);
    FORMS(MPI_ERR_TOPOLOGY, world, MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, one, 1, MPI_INT, two, 1, MPI_INT);
}

// Nobody is in place here, whatever else is wrong.
static void between_groups(void) {
    MPI_Comm inter;
    MPI_Intercomm_create(MPI_COMM_SELF, 0, world, 1 - rank, 0, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    FORMS(MPI_ERR_ROOT, inter, MPI_Bcast, MPI_Ibcast, one, 1, MPI_INT, 1);
    FORMS(MPI_ERR_BUFFER, inter, MPI_Allgather, MPI_Iallgather, MPI_IN_PLACE, 1, MPI_INT, two, 1, MPI_INT);
    FORMS(MPI_ERR_BUFFER, inter, MPI_Allgather, MPI_Iallgather, MPI_IN_PLACE, 1, MPI_INT, two, -1, MPI_INT);
    FORMS(MPI_ERR_BUFFER, inter, MPI_Alltoall, MPI_Ialltoall, MPI_IN_PLACE, 1, MPI_INT, two, 1, MPI_DATATYPE_NULL);
    FORMS(MPI_ERR_BUFFER, inter, MPI_Allreduce, MPI_Iallreduce, MPI_IN_PLACE, two, 1, MPI_INT, MPI_SUM);
    FORMS(MPI_ERR_COMM, inter, MPI_Scan, MPI_Iscan, one, two, 1, MPI_INT, MPI_SUM);
    MPI_Comm_free(&inter);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    in_one_group();
    between_groups();
    return finish();
}
