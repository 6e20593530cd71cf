// Ports and published names of a rank that has failed: who waits there hears of it, who comes later too, and others may
// publish the names.
//# ranks: 4
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
#include <unistd.h>

static char port[MPI_MAX_PORT_NAME], other[MPI_MAX_PORT_NAME];

// Rank 3 opens both ports, and dies when the others wait, or are about to.
static void open_and_die(void) {
    int length = sizeof port;
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Open_port(MPI_INFO_NULL, other);
    MPI_Publish_name("sea", MPI_INFO_NULL, port);
    for (int to = 0; to < 3; to++) {
        MPI_Send(port, length, MPI_CHAR, to, 0, MPI_COMM_WORLD);
        MPI_Send(other, length, MPI_CHAR, to, 0, MPI_COMM_WORLD);
    }
    usleep(50000);
    raise(SIGKILL);
}

int main(int argc, char **argv) {
    MPI_Comm made = MPI_COMM_NULL;
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (rank == 3) open_and_die();
    MPI_Recv(port, sizeof port, MPI_CHAR, 3, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(other, sizeof other, MPI_CHAR, 3, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    // At one port somebody accepts, at the other one somebody connects, and nobody comes.
    if (rank == 0) CHECK_EQ(class_of(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made)), MPI_ERR_PORT);
    if (rank == 1) CHECK_EQ(class_of(MPI_Comm_connect(other, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made)), MPI_ERR_PORT);
    CHECK_EQ(class_of(MPI_Recv(NULL, 0, MPI_INT, 3, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
    CHECK_EQ(made, MPI_COMM_NULL);
    CHECK_EQ(class_of(MPI_Comm_accept(other, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made)), MPI_ERR_PORT);
    CHECK_EQ(class_of(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made)), MPI_ERR_PORT);
    CHECK_EQ(class_of(MPI_Close_port(port)), MPI_ERR_PORT);
    if (rank == 0) {
        CHECK_EQ(class_of(MPI_Lookup_name("sea", MPI_INFO_NULL, other)), MPI_ERR_NAME);
        CHECK_EQ(MPI_Open_port(MPI_INFO_NULL, port), MPI_SUCCESS);
        CHECK_EQ(MPI_Publish_name("sea", MPI_INFO_NULL, port), MPI_SUCCESS);
        CHECK_EQ(MPI_Lookup_name("sea", MPI_INFO_NULL, other), MPI_SUCCESS);
        CHECK(strcmp(port, other) == 0);
        CHECK_EQ(MPI_Unpublish_name("sea", MPI_INFO_NULL, port), MPI_SUCCESS);
        CHECK_EQ(MPI_Close_port(port), MPI_SUCCESS);
        puts("passed");
    }
    MPI_Finalize();
    return 0;
}
