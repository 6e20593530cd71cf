// A rank that ends by MPI_ERRORS_ABORT has failed for the others, which wait for it no more.
//# ranks: 3 4
//# abi: mpi5 mpich openmpi
//# progress: none
//# policies: listed
// Ranks that survive each other do no work for others.
//# nodes: no
// Between nodes the whole job ends, as MPI_Abort may do.
//# settings: COHORT_ON_FAILURE=continue
//# exit: 6
//# stdout: passed
//# stderr: MPI_Send failed on MPI_COMM_SELF: MPI_ERR_RANK
#include "check.h"
#include "survival.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (rank == 2) {
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ABORT);
        MPI_Send(NULL, 0, MPI_INT, 5, 0, MPI_COMM_SELF);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int flag = 1, class, members;
    MPI_Error_class(MPI_Recv(NULL, 0, MPI_INT, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &class);
    CHECK_EQ(class, MPIX_ERR_PROC_FAILED);
    MPI_Error_class(MPIX_Comm_agree(MPI_COMM_WORLD, &flag), &class);
    CHECK_EQ(class, MPIX_ERR_PROC_FAILED);
    MPI_Comm left;
    CHECK_EQ(MPIX_Comm_shrink(MPI_COMM_WORLD, &left), MPI_SUCCESS);
    MPI_Comm_size(left, &members);
    CHECK_EQ(members, size - 1);
    MPI_Comm_free(&left);
    if (rank == 0) puts("passed");
    MPI_Finalize();
}
