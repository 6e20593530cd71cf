// Parts of one communicator are communicators of their own: what is revoked, agreed on or given up in one of them says
// nothing of the others.
//# ranks: 4
//# abi: mpi5 mpich openmpi
//# progress: none
//# policies: listed
// Ranks that survive each other do no work for others.
//# nodes: no
// Jobs of several nodes are in tests/runner/nodes/survival.rs.
//# settings: COHORT_ON_FAILURE=continue
//# stderr: rank 3 (pid
//# stderr: killed by signal 9 (SIGKILL)
#include "check.h"
#include "survival.h"
#include <signal.h>

// Even and odd ranks, each a part.
static MPI_Comm split(void) {
    MPI_Comm part;
    CHECK_EQ(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &part), MPI_SUCCESS);
    return part;
}

// The same, of groups.
static MPI_Comm create(void) {
    MPI_Comm part;
    MPI_Group world, half;
    int range[1][3] = {{rank % 2, size - 1, 2}};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, range, &half);
    CHECK_EQ(MPI_Comm_create(MPI_COMM_WORLD, half, &part), MPI_SUCCESS);
    MPI_Group_free(&half);
    MPI_Group_free(&world);
    return part;
}

// Ranks 0 and 1, and ranks 2 and 3, each with the other in the other group.
static MPI_Comm split_between(void) {
    MPI_Comm half = split(), inter, part;
    CHECK_EQ(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 3, &inter), MPI_SUCCESS);
    CHECK_EQ(MPI_Comm_split(inter, rank / 2, 0, &part), MPI_SUCCESS);
    MPI_Comm_free(&half);
    MPI_Comm_free(&inter);
    return part;
}

static int is_revoked(MPI_Comm comm) {
    int flag = 7;
    CHECK_EQ(MPIX_Comm_is_revoked(comm, &flag), MPI_SUCCESS);
    return flag;
}

// Rank 0 revokes its part. `is_mine`: the caller is a member, too.
static void revoke(MPI_Comm part, int is_mine) {
    if (rank == 0) CHECK_EQ(MPIX_Comm_revoke(part), MPI_SUCCESS);
    while (is_mine && !is_revoked(part)) continue;
    CHECK_EQ(MPI_Barrier(MPI_COMM_WORLD), MPI_SUCCESS);
    CHECK_EQ(is_revoked(part), is_mine);
    CHECK_EQ(class_of(MPI_Barrier(part)), is_mine ? MPIX_ERR_REVOKED : MPI_SUCCESS);
    MPI_Comm_free(&part);
}

// Odd ranks agree while rank 2 lets rank 0 wait.
static void agree(MPI_Comm part) {
    int flag = rank % 2 ? 8 | rank : 16 | rank;
    if (rank == 2) CHECK_EQ(MPI_Recv(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK_EQ(MPIX_Comm_agree(part, &flag), MPI_SUCCESS);
    CHECK_EQ(flag, rank % 2 ? 8 | 1 : 16);
    if (rank == 1) CHECK_EQ(MPI_Send(NULL, 0, MPI_INT, 2, 0, MPI_COMM_WORLD), MPI_SUCCESS);
    MPI_Comm_free(&part);
}

// Rank 3 dies in a collective of its part, which rank 1 gives up: when all others need nothing of it any more.
static void die(MPI_Comm part) {
    int one = 1, sum = 0, members;
    if (rank == 3) {
        for (int from = 0; from < 3; from++) MPI_Recv(NULL, 0, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        raise(SIGKILL);
    }
    CHECK_EQ(MPI_Send(NULL, 0, MPI_INT, 3, 1, MPI_COMM_WORLD), MPI_SUCCESS);
    if (rank == 1) {
        CHECK_EQ(class_of(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, part)), MPIX_ERR_PROC_FAILED);
        for (int to = 0; to < 3; to += 2) CHECK_EQ(MPI_Send(NULL, 0, MPI_INT, to, 0, MPI_COMM_WORLD), MPI_SUCCESS);
    } else {
        CHECK_EQ(MPI_Recv(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_SUCCESS);
        CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, part), MPI_SUCCESS);
        CHECK_EQ(sum, 2);
    }
    MPI_Comm left;
    CHECK_EQ(MPIX_Comm_shrink(part, &left), MPI_SUCCESS);
    CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, left), MPI_SUCCESS);
    MPI_Comm_size(left, &members);
    CHECK_EQ(members, rank == 1 ? 1 : 2);
    CHECK_EQ(sum, members);
    MPI_Comm_free(&left);
    MPI_Comm_free(&part);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    revoke(split(), rank % 2 == 0);
    revoke(create(), rank % 2 == 0);
    revoke(split_between(), rank < 2);
    agree(split());
    agree(create());
    die(split());
    if (rank == 0) puts("passed");
    MPI_Finalize();
    return 0;
}
