// The error of MPI_Comm_disconnect with a dead member goes to the error handler that the communicator had.
//# ranks: 3 4
//# abi: mpi5 mpich openmpi
//# progress: none
//# policies: listed
// Ranks that survive each other do no work for others.
//# settings: COHORT_ON_FAILURE=continue
//# nodes: no
// The error handler is the same wherever members are.
//# stdout: passed
//# stderr: rank 2 (pid
//# stderr: killed by signal 9 (SIGKILL)
#include "check.h"
#include "survival.h"
#include <signal.h>

static int calls;

static void hear(MPI_Comm *comm, int *code, ...) {
    int class;
    (void)comm;
    MPI_Error_class(*code, &class);
    if (class == MPIX_ERR_PROC_FAILED) calls++;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm returning, calling;
    MPI_Errhandler handler;
    int class;
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_dup(MPI_COMM_WORLD, &returning);
    MPI_Comm_dup(MPI_COMM_WORLD, &calling);
    MPI_Comm_set_errhandler(returning, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(calling, handler);
    MPI_Errhandler_free(&handler);
    if (rank == 2) raise(SIGKILL);
    // MPI_COMM_WORLD has the initial one, which would end the job.
    MPI_Error_class(MPI_Comm_disconnect(&returning), &class);
    CHECK_EQ(class, MPIX_ERR_PROC_FAILED);
    CHECK_EQ(returning, MPI_COMM_NULL);
    MPI_Error_class(MPI_Comm_disconnect(&calling), &class);
    CHECK_EQ(class, MPIX_ERR_PROC_FAILED);
    CHECK_EQ(calling, MPI_COMM_NULL);
    CHECK_EQ(calls, 1);
    if (rank == 0) puts("passed");
    MPI_Finalize();
}
