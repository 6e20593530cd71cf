// Policies that change from phase to phase, by MPIX_Progress_set and by the info key of
// communicators: under each of them long messages in both directions arrive whole, while the ranks
// compute and while they wait. A name that is no policy is an error.
//# abi: mpi5
//# ranks: 2 3
//# progress: all
#include "check.h"
#include "policies.h"
#include <unistd.h>
enum { LENGTH = 150000, ROUNDS = 3 };
static unsigned char incoming[LENGTH], outgoing[LENGTH];

static void exchange(int seed) {
    MPI_Request requests[2];
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    for (int i = 0; i < LENGTH; i++) outgoing[i] = (unsigned char)(i * 5 + seed + rank);
    memset(incoming, 0, LENGTH);
    MPI_Irecv(incoming, LENGTH, MPI_BYTE, MPI_ANY_SOURCE, seed, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(outgoing, LENGTH, MPI_BYTE, next, seed, MPI_COMM_WORLD, &requests[1]);
    usleep(1000);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < LENGTH; i++) CHECK_EQ(incoming[i], (unsigned char)(i * 5 + seed + last));
}

int main(int argc, char **argv) {
    MPI_Comm copy;
    MPI_Info info;
    int seed = 0;
    start(&argc, &argv);
    // From both ends of the list, so that neighbours in it, which are alike, do not follow each other.
    for (int i = 0; i < POLICY_COUNT; i++) {
        int place = i % 2 == 0 ? i / 2 : POLICY_COUNT - 1 - i / 2;
        CHECK_EQ(MPIX_Progress_set(MPI_COMM_WORLD, policy_names[place]), MPI_SUCCESS);
        for (int round = 0; round < ROUNDS; round++) exchange(seed++);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    // Ranks need not agree.
    CHECK_EQ(MPIX_Progress_set(MPI_COMM_SELF, policy_names[rank % POLICY_COUNT]), MPI_SUCCESS);
    for (int round = 0; round < ROUNDS; round++) exchange(seed++);

    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Info_create(&info);
    MPI_Info_set(info, "cohort_progress", "ghost");
    MPI_Comm_set_info(copy, info);
    exchange(seed++);
    MPI_Info_set(info, "cohort_progress", "gost");
    MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
    CHECK_EQ(class_of(MPI_Comm_set_info(copy, info)), MPI_ERR_INFO_VALUE);
    CHECK_EQ(class_of(MPIX_Progress_set(copy, "stael")), MPI_ERR_ARG);
    exchange(seed++);
    MPI_Info_free(&info);
    MPI_Comm_free(&copy);
    return finish();
}
