// On a revoked communicator each collective is refused, also at members that would exchange nothing with others.
//# ranks: 3
//# abi: mpi5 mpich openmpi
//# progress: none
//# policies: listed
// Ranks that survive each other do no work for others.
//# settings: COHORT_ON_FAILURE=continue
//# nodes: no
// Who is told of a revoked communicator is in survive_parts.c, also on several nodes.
//# stdout: passed
#include "check.h"
#include "survival.h"

static void await_revoked(MPI_Comm comm) {
    for (int flag = 0; !flag;) CHECK_EQ(MPIX_Comm_is_revoked(comm, &flag), MPI_SUCCESS);
}

static void alone(void) {
    MPI_Comm self;
    MPI_Request request;
    int one = 1, sum = 0;
    MPI_Comm_dup(MPI_COMM_SELF, &self);
    CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, self), MPI_SUCCESS);
    CHECK_EQ(sum, 1);
    CHECK_EQ(MPIX_Comm_revoke(self), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, self)), MPIX_ERR_REVOKED);
    CHECK_EQ(class_of(MPI_Barrier(self)), MPIX_ERR_REVOKED);
    int code = MPI_Ibarrier(self, &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQ(class_of(code), MPIX_ERR_REVOKED);
    MPI_Comm_free(&self);
}

// Rank 0 on one side, the others on the other.
static void apart(void) {
    MPI_Comm own, inter;
    int second = rank > 0, one = 1, sum = 0, data = 0;
    MPI_Comm_split(MPI_COMM_WORLD, second, 0, &own);
    CHECK_EQ(MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, !second, 0, &inter), MPI_SUCCESS);
    CHECK_EQ(MPI_Barrier(inter), MPI_SUCCESS);
    // Nobody is in that barrier any more.
    CHECK_EQ(MPI_Barrier(MPI_COMM_WORLD), MPI_SUCCESS);
    if (rank == 0) CHECK_EQ(MPIX_Comm_revoke(inter), MPI_SUCCESS);
    await_revoked(inter);
    CHECK_EQ(class_of(MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, second ? 0 : MPI_ROOT, inter)), MPIX_ERR_REVOKED);
    int nobody = second ? 0 : MPI_PROC_NULL;
    CHECK_EQ(class_of(MPI_Bcast(&data, 1, MPI_INT, nobody, inter)), MPIX_ERR_REVOKED);
    CHECK_EQ(class_of(MPI_Gather(&one, 1, MPI_INT, &sum, 1, MPI_INT, nobody, inter)), MPIX_ERR_REVOKED);
    CHECK_EQ(class_of(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter)), MPIX_ERR_REVOKED);
    CHECK_EQ(class_of(MPI_Barrier(inter)), MPIX_ERR_REVOKED);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&own);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    alone();
    apart();
    if (rank == 0) puts("passed");
    MPI_Finalize();
}
