// MPI_Comm_create_group goes on without the dead after a collective has failed, says who is missing, and ends when its
// communicator is revoked. So do MPI_Intercomm_create and MPI_Comm_create_from_group.
//# ranks: 4
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
static MPI_Group world, living;

static void check_sum(MPI_Comm comm, int members) {
    int one = 1, sum = 0;
    CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
    CHECK_EQ(sum, members);
}

// Rank 2 dies when nobody needs anything of it any more, and a collective fails everywhere.
static void die(void) {
    if (rank == 2) {
        for (int i = 0; i < 3; i++) MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        raise(SIGKILL);
    }
    CHECK_EQ(MPI_Send(NULL, 0, MPI_INT, 2, 0, MPI_COMM_WORLD), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_Barrier(MPI_COMM_WORLD)), MPIX_ERR_PROC_FAILED);
}

static void create_groups(void) {
    MPI_Comm comm = MPI_COMM_NULL;
    CHECK_EQ(MPI_Comm_create_group(MPI_COMM_WORLD, living, 7, &comm), MPI_SUCCESS);
    check_sum(comm, 3);
    MPI_Comm_free(&comm);
    CHECK_EQ(class_of(MPI_Comm_create_group(MPI_COMM_WORLD, world, 8, &comm)), MPIX_ERR_PROC_FAILED);
    // The members that have failed do not end what others do.
    CHECK_EQ(MPI_Comm_create_group(MPI_COMM_WORLD, living, 7, &comm), MPI_SUCCESS);
    check_sum(comm, 3);
    MPI_Comm_free(&comm);
}

// Rank 3 revokes instead of making a communicator with the others.
static void revoke(void) {
    MPI_Comm left, comm = MPI_COMM_NULL;
    MPI_Group group;
    CHECK_EQ(MPIX_Comm_shrink(MPI_COMM_WORLD, &left), MPI_SUCCESS);
    MPI_Comm_group(left, &group);
    if (rank == 3) {
        CHECK_EQ(MPIX_Comm_revoke(left), MPI_SUCCESS);
    } else {
        CHECK_EQ(class_of(MPI_Comm_create_group(left, group, 3, &comm)), MPIX_ERR_REVOKED);
    }
    CHECK_EQ(class_of(MPI_Comm_create_group(left, group, 4, &comm)), MPIX_ERR_REVOKED);
    MPI_Group_free(&group);
    MPI_Comm_free(&left);
}

// Ranks 0 and 1 meet rank 3 through the world, whose collectives have failed.
static void meet(void) {
    MPI_Comm left, half, inter;
    CHECK_EQ(MPIX_Comm_shrink(MPI_COMM_WORLD, &left), MPI_SUCCESS);
    CHECK_EQ(MPI_Comm_split(left, rank == 3, 0, &half), MPI_SUCCESS);
    CHECK_EQ(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank == 3 ? 0 : 3, 5, &inter), MPI_SUCCESS);
    check_sum(inter, rank == 3 ? 2 : 1);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    MPI_Comm_free(&left);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    int dead = 2;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_excl(world, 1, &dead, &living);
    die();
    create_groups();
    revoke();
    meet();
    MPI_Group_free(&world);
    MPI_Group_free(&living);
    if (rank == 0) puts("passed");
    MPI_Finalize();
    return 0;
}
