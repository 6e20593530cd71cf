// Communicators that are made from groups without a parent end at all members when one of them is dead, and are made
// without it. So do both groups of an intercommunicator when one of them has a dead member.
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

static int from_group(MPI_Group group, const char *tag, MPI_Comm *comm) {
    *comm = MPI_COMM_NULL;
    return MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, comm);
}

static void check(MPI_Group group, const char *tag, int members) {
    MPI_Comm comm;
    int one = 1, sum = 0;
    CHECK_EQ(from_group(group, tag, &comm), MPI_SUCCESS);
    CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
    CHECK_EQ(sum, members);
    MPI_Comm_free(&comm);
}

// The even ranks, one of which is dead, and the odd ones. The leader of either may be the one that tells the number.
static void check_between(MPI_Group world, int even_leads) {
    int first[2][3] = {{0, size - 1 - (size - 1) % 2, 2}, {1, size - 1 - size % 2, 2}};
    MPI_Group groups[2];
    MPI_Comm comm = MPI_COMM_NULL;
    for (int odd = 0; odd < 2; odd++) MPI_Group_range_incl(world, 1, &first[odd], &groups[odd]);
    int own = rank % 2, odd_leader = even_leads ? 0 : 1;
    // Rank 4 leads the even ones, after 1 and 3, if there is one.
    int even_leader = even_leads || size < 5 ? 0 : 2;
    int leaders[2] = {even_leader, odd_leader};
    int code = MPI_Intercomm_create_from_groups(groups[own], leaders[own], groups[!own], leaders[!own], "between",
                                                MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    CHECK_EQ(class_of(code), MPIX_ERR_PROC_FAILED);
    CHECK_EQ(comm, MPI_COMM_NULL);
    for (int odd = 0; odd < 2; odd++) MPI_Group_free(&groups[odd]);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    int dead = 2;
    MPI_Comm comm;
    MPI_Group world, living;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_excl(world, 1, &dead, &living);
    check(world, "all", size);
    if (rank == 2) {
        for (int i = 1; i < size; i++) MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        raise(SIGKILL);
    }
    CHECK_EQ(MPI_Send(NULL, 0, MPI_INT, 2, 0, MPI_COMM_WORLD), MPI_SUCCESS);
    CHECK_EQ(class_of(from_group(world, "with the dead", &comm)), MPIX_ERR_PROC_FAILED);
    // The same when all of them know already.
    CHECK_EQ(class_of(MPI_Recv(NULL, 0, MPI_INT, 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
    CHECK_EQ(class_of(from_group(world, "with the known dead", &comm)), MPIX_ERR_PROC_FAILED);
    check(living, "the living", size - 1);
    check_between(world, 1);
    check_between(world, 0);
    check(living, "the living", size - 1);
    MPI_Group_free(&world);
    MPI_Group_free(&living);
    if (rank == 0) puts("passed");
    MPI_Finalize();
    return 0;
}
