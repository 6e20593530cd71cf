// An intercommunicator is shrunk, first with all of its members and then without a dead one. Both groups may have
// members on each node.
//# ranks: 4 5
//# abi: mpi5 mpich openmpi
//# progress: none
//# policies: listed
// Ranks that survive each other do no work for others.
//# nodes: no
// Jobs of several nodes are in tests/runner/nodes/survival.rs.
//# settings: COHORT_ON_FAILURE=continue
//# stderr: rank 2 (pid
//# stderr: killed by signal 9 (SIGKILL)
#include "check.h"
#include "survival.h"
#include <signal.h>

// Ranks 0, 3 and those above on one side, with `first` first.
static MPI_Comm make(int first) {
    MPI_Comm own, inter;
    int second = rank == 1 || rank == 2;
    CHECK_EQ(MPI_Comm_split(MPI_COMM_WORLD, second, rank != first, &own), MPI_SUCCESS);
    CHECK_EQ(MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, second ? (first == 3 ? 3 : 0) : (first == 2 ? 2 : 1), first,
                                  &inter), MPI_SUCCESS);
    MPI_Comm_free(&own);
    return inter;
}

static void shrink(MPI_Comm inter, int members) {
    MPI_Comm left, merged;
    int one = 1, sum = 0, second = rank == 1 || rank == 2;
    CHECK_EQ(MPIX_Comm_shrink(inter, &left), MPI_SUCCESS);
    CHECK_EQ(MPI_Barrier(left), MPI_SUCCESS);
    CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, left), MPI_SUCCESS);
    CHECK_EQ(sum, second ? size - 2 : members - (size - 2));
    CHECK_EQ(MPI_Intercomm_merge(left, second, &merged), MPI_SUCCESS);
    CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged), MPI_SUCCESS);
    CHECK_EQ(sum, members);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&left);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm inters[4];
    for (int first = 0; first < 4; first++) {
        inters[first] = make(first);
        shrink(inters[first], size);
    }
    if (rank == 2) {
        for (int i = 1; i < size; i++) MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        raise(SIGKILL);
    }
    CHECK_EQ(MPI_Send(NULL, 0, MPI_INT, 2, 0, MPI_COMM_WORLD), MPI_SUCCESS);
    for (int first = 0; first < 4; first++) {
        shrink(inters[first], size - 1);
        MPI_Comm_free(&inters[first]);
    }
    if (rank == 0) puts("passed");
    MPI_Finalize();
    return 0;
}
