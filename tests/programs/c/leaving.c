// Ranks that leave their policy, fork, and end while dedicated workers, threads and signals work
// for them and for others: in each round one rank, which may be the host of the worker, changes to
// `none` and back in the middle of long messages, and another one forks a child that ends at once.
// After MPI_Finalize ranks execute another program, or end without the C library.
//# ranks: 3 4
//# abi: mpi5
//# progress: all
//# timeout: 60
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>
enum { LENGTH = 120000, ROUNDS = 24, MESSAGES = 4 };
static unsigned char incoming[MESSAGES][LENGTH], outgoing[MESSAGES][LENGTH];

static unsigned char pattern(int sender, int round, int message, int i) {
    return (unsigned char)(i * 3 + sender * 7 + round * 11 + message);
}

static void disturb(int round, const char *policy) {
    if (rank == round % size) {
        CHECK_EQ(MPIX_Progress_set(MPI_COMM_WORLD, "none"), MPI_SUCCESS);
        usleep(200);
        CHECK_EQ(MPIX_Progress_set(MPI_COMM_WORLD, policy), MPI_SUCCESS);
    } else if (rank == (round + 1) % size) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) _exit(round);
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == round);
    } else {
        usleep(300);
    }
}

int main(int argc, char **argv) {
    const char *given = getenv("COHORT_PROGRESS"), *policy = given ? given : "steal";
    start(&argc, &argv);
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[2 * MESSAGES];
        for (int m = 0; m < MESSAGES; m++) {
            for (int i = 0; i < LENGTH; i++) outgoing[m][i] = pattern(rank, round, m, i);
            MPI_Irecv(incoming[m], LENGTH, MPI_BYTE, m % 2 ? MPI_ANY_SOURCE : last, round, MPI_COMM_WORLD,
                      &requests[m]);
        }
        for (int m = 0; m < MESSAGES; m++)
            MPI_Isend(outgoing[m], LENGTH, MPI_BYTE, next, round, MPI_COMM_WORLD, &requests[MESSAGES + m]);
        disturb(round, policy);
        MPI_Waitall(2 * MESSAGES, requests, MPI_STATUSES_IGNORE);
        for (int m = 0; m < MESSAGES; m++)
            for (int i = 0; i < LENGTH; i++) CHECK_EQ(incoming[m][i], pattern(last, round, m, i));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank % 2) execl("/bin/true", "true", NULL);
    _exit(rank % 2);
}
