// A nonblocking duplicate of an intercommunicator ends when its first process, which would tell the numbers, has died.
//# ranks: 4
//# abi: mpi5 mpich openmpi
//# progress: none
//# policies: listed
// Ranks that survive each other do no work for others.
//# settings: COHORT_ON_FAILURE=continue
//# nodes: no
// Jobs of several nodes are in tests/runner/nodes/survival.rs.
//# stdout: passed
//# stderr: killed by signal 9 (SIGKILL)
#include "check.h"
#include "survival.h"
#include <signal.h>

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm own, inter, copy;
    MPI_Request request;
    int second = rank != 0 && rank != 3;
    CHECK_EQ(MPI_Comm_split(MPI_COMM_WORLD, second, 0, &own), MPI_SUCCESS);
    CHECK_EQ(MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, !second, 0, &inter), MPI_SUCCESS);
    CHECK_EQ(MPI_Comm_idup(inter, &copy, &request), MPI_SUCCESS);
    CHECK_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK_EQ(MPI_Barrier(copy), MPI_SUCCESS);
    MPI_Comm_free(&copy);
    if (rank == 0) {
        // Nobody is in that barrier any more.
        for (int i = 1; i < size; i++) MPI_Recv(NULL, 0, MPI_INT, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        raise(SIGKILL);
    }
    CHECK_EQ(MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_SUCCESS);
    for (int turn = 0; turn < 3; turn++) {
        copy = MPI_COMM_NULL;
        int code = MPI_Comm_idup(inter, &copy, &request);
        if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        int class = class_of(code);
        CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED);
        if (copy != MPI_COMM_NULL) MPI_Comm_free(&copy);
    }
    if (rank == 1) puts("passed");
    MPI_Finalize();
}
