/* A hundred thousand communicators at a time: each has a handle and an id of its own, messages keep to theirs, and all
   can be freed in either order, after which there is room for as many again. No rank waits for another one, so no
   policy and no other node makes a difference. */
//# ranks: 1
//# abi: mpich mpi5 openmpi
//# policies: listed
//# nodes: no
//# timeout: 60
#include "check.h"
#include <stdlib.h>

enum { MANY = 100000, STEP = 997 };

static MPI_Comm comms[MANY];
static int ids[MANY];

static int compare(const void *left, const void *right)
{
    int a = *(const int *)left, b = *(const int *)right;
    return (a > b) - (a < b);
}

/* Of a few communicators each gets the message that was sent in it, though all have the same envelope. */
static void exchange(void)
{
    int got[MANY / STEP + 1];
    MPI_Request requests[MANY / STEP + 1];
    int count = 0;
    for (int at = 0; at < MANY; at += STEP, count++)
        MPI_Irecv(&got[count], 1, MPI_INT, 0, 1, comms[at], &requests[count]);
    for (int at = MANY - MANY % STEP; at >= 0; at -= STEP) {
        int number = at / STEP;
        MPI_Send(&number, 1, MPI_INT, 0, 1, comms[at]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int number = 0; number < count; number++)
        CHECK_EQ(got[number], number);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    for (int turn = 0; turn < 2; turn++) {
        for (int at = 0; at < MANY; at++) {
            CHECK(MPI_Comm_dup(MPI_COMM_SELF, &comms[at]) == MPI_SUCCESS);
            ids[at] = MPI_Comm_c2f(comms[at]);
        }
        exchange();
        qsort(ids, MANY, sizeof *ids, compare);
        for (int at = 1; at < MANY; at++)
            CHECK(ids[at - 1] < ids[at]);
        for (int at = 0; at < MANY; at++)
            MPI_Comm_free(&comms[turn ? MANY - 1 - at : at]);
    }
    return finish();
}
