// Two of four ranks die; those who are left shrink, spawn two in their place, merge, and finish the sum with all four.
//# ranks: 4
//# abi: mpi5
//# progress: none
//# policies: listed
// Ranks that survive each other do no work for others.
//# nodes: no
// Jobs of several nodes that survive each other start no more ranks.
//# settings: COHORT_ON_FAILURE=continue
#include "check.h"
#include "survival.h"
#include <signal.h>

// The work of all: each adds a part.
static void work(MPI_Comm comm) {
    int me, members;
    long part, sum = 0;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &members);
    part = 1L << me;
    CHECK_EQ(MPI_Allreduce(&part, &sum, 1, MPI_LONG, MPI_SUM, comm), MPI_SUCCESS);
    CHECK_EQ(members, 4);
    CHECK_EQ(sum, 15);
}

int main(int argc, char **argv) {
    MPI_Comm parents, left, together, all;
    start(&argc, &argv);
    MPI_Comm_get_parent(&parents);
    if (parents != MPI_COMM_NULL) {
        MPI_Intercomm_merge(parents, 1, &all);
        work(all);
        MPI_Comm_free(&all);
        MPI_Comm_free(&parents);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 1 || rank == 3) raise(SIGKILL);
    int count, lost;
    do {
        // Until both are seen to be gone.
        CHECK_EQ(MPIX_Comm_shrink(MPI_COMM_WORLD, &left), MPI_SUCCESS);
        MPI_Comm_size(left, &count);
        if (count > 2) MPI_Comm_free(&left);
    } while (count > 2);
    lost = size - count;
    CHECK_EQ(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, lost, MPI_INFO_NULL, 0, left, &together, MPI_ERRCODES_IGNORE),
             MPI_SUCCESS);
    MPI_Intercomm_merge(together, 0, &all);
    work(all);
    if (rank == 0) puts("passed");
    MPI_Comm_free(&all);
    MPI_Comm_free(&together);
    MPI_Comm_free(&left);
    MPI_Finalize();
    return 0;
}
