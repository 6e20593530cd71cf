// The others go on when a rank fails: what involves it ends with an error, nobody waits for ever, and those who are
// left agree, shrink the communicator and finish.
//# ranks: 4 5
//# abi: mpi5 mpich openmpi
//# progress: none
//# policies: listed
// Ranks that survive each other do no work for others.
//# nodes: no
// Jobs of several nodes are in tests/runner/nodes/survival.rs.
//# settings: COHORT_ON_FAILURE=continue
//# stderr: rank 1 (pid
//# stderr: killed by signal 9 (SIGKILL)
//# stderr: ended with status 7
#include "check.h"
#include "survival.h"
#include <signal.h>
#include <unistd.h>
enum { LONG = 1 << 20 };
static char data[LONG], more[LONG];

// What involves rank 1, which dies.
static void meet_death(void) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    char byte = 0;
    int flag, count;
    if (rank == 1) raise(SIGKILL);
    if (rank == 0) {
        CHECK_EQ(class_of(MPI_Recv(&byte, 1, MPI_CHAR, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
        CHECK_EQ(class_of(MPI_Send(&byte, 1, MPI_CHAR, 1, 5, MPI_COMM_WORLD)), MPIX_ERR_PROC_FAILED);
        CHECK_EQ(class_of(MPI_Probe(1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
        CHECK_EQ(class_of(MPI_Iprobe(1, 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
    } else if (rank == 2) {
        // From anybody: the request stays until the failure is acknowledged.
        CHECK_EQ(MPI_Irecv(&byte, 1, MPI_CHAR, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, requests), MPI_SUCCESS);
        CHECK_EQ(class_of(MPI_Wait(requests, statuses)), MPIX_ERR_PROC_FAILED_PENDING);
        CHECK(requests[0] != MPI_REQUEST_NULL);
        CHECK_EQ(MPIX_Comm_failure_ack(MPI_COMM_WORLD), MPI_SUCCESS);
        MPI_Group failed;
        CHECK_EQ(MPIX_Comm_failure_get_acked(MPI_COMM_WORLD, &failed), MPI_SUCCESS);
        MPI_Group_size(failed, &count);
        CHECK_EQ(count, 1);
        MPI_Group_free(&failed);
        CHECK_EQ(MPI_Send(NULL, 0, MPI_CHAR, 3, 7, MPI_COMM_WORLD), MPI_SUCCESS);
        CHECK_EQ(MPI_Wait(requests, statuses), MPI_SUCCESS);
        CHECK_EQ(byte, 77);
    } else if (rank == 3) {
        CHECK_EQ(class_of(MPI_Ssend(data, LONG, MPI_CHAR, 1, 8, MPI_COMM_WORLD)), MPIX_ERR_PROC_FAILED);
        CHECK_EQ(MPI_Isend(data, LONG, MPI_CHAR, 1, 9, MPI_COMM_WORLD, requests), MPI_SUCCESS);
        CHECK_EQ(MPI_Irecv(more, LONG, MPI_CHAR, 1, 9, MPI_COMM_WORLD, requests + 1), MPI_SUCCESS);
        CHECK_EQ(class_of(MPI_Waitall(2, requests, statuses)), MPI_ERR_IN_STATUS);
        CHECK_EQ(class_of(statuses[0].MPI_ERROR), MPIX_ERR_PROC_FAILED);
        CHECK_EQ(class_of(statuses[1].MPI_ERROR), MPIX_ERR_PROC_FAILED);
        // The error of the send alone.
        CHECK_EQ(class_of(MPI_Sendrecv(data, LONG, MPI_CHAR, 1, 9, more, LONG, MPI_CHAR, MPI_PROC_NULL, 9,
                                       MPI_COMM_WORLD, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
        CHECK_EQ(MPI_Isendrecv(data, LONG, MPI_CHAR, 1, 9, more, LONG, MPI_CHAR, MPI_PROC_NULL, 9, MPI_COMM_WORLD,
                               requests), MPI_SUCCESS);
        CHECK_EQ(class_of(MPI_Wait(requests, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
        CHECK_EQ(MPI_Recv(NULL, 0, MPI_CHAR, 2, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_SUCCESS);
        byte = 77;
        CHECK_EQ(MPI_Send(&byte, 1, MPI_CHAR, 2, 6, MPI_COMM_WORLD), MPI_SUCCESS);
    }
}

// Those who are left make a communicator, of which all is well.
static MPI_Comm shrink(MPI_Comm comm, int left) {
    MPI_Comm smaller;
    int count, sum = 0, one = 1;
    CHECK_EQ(MPIX_Comm_shrink(comm, &smaller), MPI_SUCCESS);
    MPI_Comm_size(smaller, &count);
    CHECK_EQ(count, left);
    CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, smaller), MPI_SUCCESS);
    CHECK_EQ(sum, left);
    return smaller;
}

static void agree_in_world(void) {
    int flag = ~(1 << rank), count;
    MPI_Group failed;
    CHECK_EQ(class_of(MPIX_Comm_agree(MPI_COMM_WORLD, &flag)), MPIX_ERR_PROC_FAILED);
    for (int i = 0; i < size; i++) CHECK_EQ(flag >> i & 1, i == 1);
    CHECK_EQ(MPIX_Comm_ack_failed(MPI_COMM_WORLD, size, &count), MPI_SUCCESS);
    CHECK_EQ(count, 1);
    flag = 6;
    CHECK_EQ(MPIX_Comm_agree(MPI_COMM_WORLD, &flag), MPI_SUCCESS);
    CHECK_EQ(flag, 6);
    CHECK_EQ(MPIX_Comm_get_failed(MPI_COMM_WORLD, &failed), MPI_SUCCESS);
    MPI_Group world;
    int first = 0, there = -1;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_translate_ranks(failed, 1, &first, world, &there);
    CHECK_EQ(there, 1);
    MPI_Group_free(&world);
    MPI_Group_free(&failed);
}

// The same as requests, of which the communicator is freed while they are under way.
static void agree_later(MPI_Comm comm) {
    MPI_Comm copy, smaller = MPI_COMM_NULL;
    MPI_Request requests[2];
    int place, members, count = 0, done = 0;
    MPI_Comm_rank(comm, &place);
    MPI_Comm_size(comm, &members);
    int flag = ~(1 << place);
    CHECK_EQ(MPI_Comm_dup(comm, &copy), MPI_SUCCESS);
    CHECK_EQ(MPIX_Comm_iagree(copy, &flag, requests), MPI_SUCCESS);
    CHECK_EQ(MPIX_Comm_ishrink(copy, &smaller, requests + 1), MPI_SUCCESS);
    CHECK_EQ(MPI_Comm_free(&copy), MPI_SUCCESS);
    CHECK_EQ(MPI_Test(requests + 1, &done, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK_EQ(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    CHECK_EQ(flag, (int)(~0u << members));
    MPI_Comm_size(smaller, &count);
    CHECK_EQ(count, members);
    CHECK_EQ(MPI_Barrier(smaller), MPI_SUCCESS);
    MPI_Comm_free(&smaller);
}

// Collectives in which somebody dies.
static MPI_Comm lose_one_more(MPI_Comm comm) {
    int place, members, code;
    long sum, mine = 1;
    MPI_Comm_rank(comm, &place);
    MPI_Comm_size(comm, &members);
    for (int round = 0;; round++) {
        if (place == members - 1 && round == 3) _exit(7);
        code = MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
        if (code != MPI_SUCCESS) break;
        CHECK_EQ(sum, members);
        MPI_Request request;
        MPI_Ibcast(data, LONG, MPI_CHAR, round % members, comm, &request);
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) break;
    }
    CHECK(class_of(code) == MPIX_ERR_PROC_FAILED || class_of(code) == MPIX_ERR_REVOKED);
    int revoked = 0;
    CHECK_EQ(MPIX_Comm_revoke(comm), MPI_SUCCESS);
    CHECK_EQ(MPIX_Comm_is_revoked(comm, &revoked), MPI_SUCCESS);
    CHECK_EQ(revoked, 1);
    CHECK_EQ(class_of(MPI_Barrier(comm)), MPIX_ERR_REVOKED);
    CHECK_EQ(class_of(MPI_Send(&place, 1, MPI_INT, 0, 0, comm)), MPIX_ERR_REVOKED);
    CHECK_EQ(class_of(MPI_Recv(&code, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, MPI_STATUS_IGNORE)), MPIX_ERR_REVOKED);
    MPI_Comm smaller = shrink(comm, members - 1);
    MPI_Comm_free(&comm);
    return smaller;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    meet_death();
    CHECK_EQ(class_of(MPI_Barrier(MPI_COMM_WORLD)), MPIX_ERR_PROC_FAILED);
    agree_in_world();
    MPI_Comm left = shrink(MPI_COMM_WORLD, size - 1);
    agree_later(left);
    left = lose_one_more(left);
    int place;
    MPI_Comm_rank(left, &place);
    MPI_Comm_free(&left);
    if (place == 0) puts("passed");
    MPI_Finalize();
    return 0;
}
