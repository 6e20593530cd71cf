// A nonblocking duplicate with a member that has failed, or of a revoked communicator, or that a callback refuses, is
// an error, and to free what there is of it frees nothing of its parent.
//# ranks: 3
//# abi: mpi5
//# progress: none
//# policies: listed
//# wait: auto, park
// Ranks that survive each other do no work for others.
//# nodes: no
// Jobs of several nodes are in tests/runner/nodes/survival.rs.
//# settings: COHORT_ON_FAILURE=continue
//# stderr: killed by signal 9 (SIGKILL)
#include "check.h"
#include "survival.h"
#include <signal.h>

static int fails;

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)key, (void)extra, (void)in, (void)out;
    *flag = 0;
    return fails ? MPI_ERR_OTHER : MPI_SUCCESS;
}

// Gives the class of the error; the parent is as good as before.
static int duplicate(MPI_Comm comm) {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Comm_idup(comm, &made, &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
    return class_of(code);
}

int main(int argc, char **argv) {
    int key, sum = 0, one = 1, class, flag = 1;
    MPI_Comm comm, left;
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_attr(comm, key, NULL);
    fails = rank == 1;
    for (int turn = 0; turn < 20; turn++) {
        CHECK(duplicate(comm) != MPI_SUCCESS);
        CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
        CHECK_EQ(sum, 3);
    }
    fails = 0;
    CHECK_EQ(duplicate(comm), MPI_SUCCESS);
    MPI_Barrier(comm);
    if (rank == 0) raise(SIGKILL);
    class = duplicate(comm);
    CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED);
    MPIX_Comm_revoke(comm);
    CHECK_EQ(duplicate(comm), MPIX_ERR_REVOKED);
    // The parent, and MPI_COMM_WORLD, go on.
    MPIX_Comm_agree(comm, &flag);
    CHECK_EQ(MPIX_Comm_shrink(comm, &left), MPI_SUCCESS);
    CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, left), MPI_SUCCESS);
    CHECK_EQ(sum, 2);
    MPI_Comm_free(&left);
    MPI_Comm_free(&comm);
    CHECK_EQ(MPIX_Comm_shrink(MPI_COMM_WORLD, &left), MPI_SUCCESS);
    CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, left), MPI_SUCCESS);
    CHECK_EQ(sum, 2);
    MPI_Comm_free(&left);
    MPI_Comm_free_keyval(&key);
    if (rank == 1) puts("passed");
    MPI_Finalize();
    return 0;
}
