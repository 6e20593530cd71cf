// MPI_Intercomm_create ends at both groups when one of them has a dead member, whoever leads them.
//# ranks: 3 4
//# abi: mpi5 mpich openmpi
//# progress: none
//# policies: listed
// Ranks that survive each other do no work for others.
//# settings: COHORT_ON_FAILURE=continue
//# nodes: no
// The leaders exchange the same messages wherever they are.
//# stdout: passed
//# stderr: killed by signal 9 (SIGKILL)
#include "check.h"
#include "survival.h"
#include <signal.h>

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm own, inter;
    int second = rank >= 2;
    CHECK_EQ(MPI_Comm_split(MPI_COMM_WORLD, second, 0, &own), MPI_SUCCESS);
    if (rank == 1) raise(SIGKILL);
    for (int turn = 0; turn < 3; turn++) {
        int class = class_of(MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, second ? 0 : 2, turn, &inter));
        CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED);
    }
    if (rank == 0) puts("passed");
    MPI_Finalize();
}
