// MPI_Comm_idup waits for nobody: a member duplicates long before the others, who first want
// something from it; several duplicates are under way at once, of a communicator between groups too.
//# ranks: 1 2 4
//# progress: steal, none
#include "check.h"
enum { COPIES = 3 };

/* A sum over the duplicate and a message around its ring, told apart from those of its parent. */
static void use(MPI_Comm comm) {
    int mine = rank + 1, sum, from = -1, result;
    MPI_Comm_compare(comm, MPI_COMM_WORLD, &result);
    CHECK_EQ(result, MPI_CONGRUENT);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK_EQ(sum, size * (size + 1) / 2);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 5, &from, 1, MPI_INT,
                 (rank + size - 1) % size, 5, comm, MPI_STATUS_IGNORE);
    CHECK_EQ(from, (rank + size - 1) % size);
}

/* The last member has its duplicate under way when the first, which draws the number, hears of it. */
static void last_comes_first(void) {
    int word = 0, flag = 0;
    MPI_Comm copies[COPIES];
    MPI_Request requests[COPIES];
    if (rank != size - 1) MPI_Recv(&word, 1, MPI_INT, size - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < COPIES; i++) MPI_Comm_idup(MPI_COMM_WORLD, &copies[i], &requests[i]);
    for (int to = 0; rank == size - 1 && to < size - 1; to++)
        MPI_Send(&word, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
    /* Seen by a query first, then used before the request is given back. */
    while (!flag) MPI_Request_get_status(requests[1], &flag, MPI_STATUS_IGNORE);
    use(copies[1]);
    MPI_Waitall(COPIES, requests, MPI_STATUSES_IGNORE);
    for (int i = COPIES - 1; i >= 0; i--) {
        use(copies[i]);
        MPI_Comm_free(&copies[i]);
    }
}

static void between_groups(void) {
    MPI_Comm half, bridge, copy, merged;
    MPI_Request request;
    int upper = rank >= size / 2, sum, mine = 1;
    MPI_Comm_split(MPI_COMM_WORLD, upper, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : size / 2, 3, &bridge);
    MPI_Comm_idup(bridge, &copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Intercomm_merge(copy, upper, &merged);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, merged);
    CHECK_EQ(sum, size);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&bridge);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    for (int round = 0; round < 20; round++) last_comes_first();
    if (size > 1) between_groups();
    MPI_Finalize();
    return 0;
}
