// Members of a collective call that blocks, or makes a persistent operation, are told that they disagree, wherever they
// are.
//# ranks: 3
//# settings: COHORT_CHECK=members
#include "check.h"

static int out[64], in[64];

static void refused(int code, int line) {
    int all = class_of(code) == MPI_ERR_NOT_SAME, everybody = 0;
    MPI_Allreduce(&all, &everybody, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!everybody) fprintf(stderr, "rank %d: line %d: class %d\n", rank, line, class_of(code));
    CHECK(everybody);
}
#define REFUSED(call) refused(call, __LINE__)
#define AGREED(call) CHECK_EQ(call, MPI_SUCCESS)

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Datatype t = MPI_INT, pair;
    int odd = rank == 2, counts[3] = {1, 2, 3}, starts[3] = {0, 4, 8};
    MPI_Type_contiguous(2, t, &pair);
    MPI_Type_commit(&pair);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    REFUSED(odd ? MPI_Barrier(comm) : MPI_Bcast(out, 1, t, 0, comm));
    REFUSED(MPI_Bcast(out, 1, t, odd, comm));
    REFUSED(MPI_Bcast(out, 1 + odd, t, 0, comm));
    AGREED(MPI_Bcast(out, odd ? 4 : 2, odd ? t : pair, 0, comm));
    REFUSED(MPI_Reduce(out, in, 1, t, odd ? MPI_MAX : MPI_SUM, 0, comm));
    REFUSED(MPI_Reduce(out, in, 1 + odd, t, MPI_SUM, 0, comm));
    REFUSED(MPI_Allreduce(out, in, 1, odd ? MPI_FLOAT : t, MPI_SUM, comm));
    REFUSED(MPI_Gather(out, 1 + odd, t, in, 1, t, 1, comm));
    REFUSED(MPI_Scatter(out, 1, t, in, 1 + odd, t, 1, comm));
    REFUSED(MPI_Allgather(out, 1 + odd, t, in, 1, t, comm));
    REFUSED(MPI_Allgather(out, 1, t, in, 1 + odd, t, comm));
    REFUSED(MPI_Alltoall(out, 1 + odd, t, in, 1, t, comm));
    REFUSED(MPI_Exscan(out, in, 1, t, odd ? MPI_PROD : MPI_SUM, comm));
    AGREED(MPI_Gather(out, 2, t, in, 1, pair, 1, comm));
    AGREED(MPI_Gather(rank == 1 ? MPI_IN_PLACE : out, 2, t, in, 1, pair, 1, comm));
    AGREED(MPI_Scatter(out, 1, pair, rank ? in : MPI_IN_PLACE, 2, t, 0, comm));
    AGREED(MPI_Gatherv(out, 1 + rank, t, in, counts, starts, t, 1, comm));
    AGREED(MPI_Allgatherv(out, 1 + rank, t, in, counts, starts, t, comm));
    AGREED(MPI_Allreduce(MPI_IN_PLACE, in, 1, t, MPI_SUM, comm));
    // In some operations each member chooses for itself.
    int shares[3] = {1, 1, 0};
    AGREED(MPI_Scan(odd ? MPI_IN_PLACE : out, in, 1, t, MPI_SUM, comm));
    AGREED(MPI_Exscan(odd ? MPI_IN_PLACE : out, in, 1, t, MPI_SUM, comm));
    AGREED(MPI_Reduce_scatter(odd ? out : MPI_IN_PLACE, odd ? NULL : in, shares, t, MPI_SUM, comm));
    REFUSED(MPI_Allreduce(odd ? MPI_IN_PLACE : out, in, 1, t, MPI_SUM, comm));
    AGREED(MPI_Alltoall(MPI_IN_PLACE, 1, t, in, 1, t, comm));
    AGREED(MPI_Barrier(comm));
    MPI_Request request = MPI_REQUEST_NULL;
    REFUSED(MPI_Bcast_init(out, 1, t, odd, comm, MPI_INFO_NULL, &request));
    REFUSED(odd ? MPI_Barrier(comm) : MPI_Barrier_init(comm, MPI_INFO_NULL, &request));
    REFUSED(MPI_Allreduce_init(out, in, 1 + odd, t, MPI_SUM, comm, MPI_INFO_NULL, &request));
    AGREED(MPI_Bcast_init(out, odd ? 4 : 2, odd ? t : pair, 0, comm, MPI_INFO_NULL, &request));
    MPI_Start(&request);
    AGREED(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Request_free(&request);
    MPI_Type_free(&pair);
    return finish();
}
