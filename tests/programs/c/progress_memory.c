// What each progress policy takes in memory, per rank: the pages that a change from `none` to it
// and its use for long messages add to the one address space of all ranks (of a node). The
// interrupt thread of `helper` has less than 64 KiB, and so has everything else.
//# ranks: 4
//# abi: mpi5
//# stdout: helper
//# nodes: no
#include "check.h"
#include "policies.h"
enum { LENGTH = 200000, ROUNDS = 20, LIMIT_KIB = 64 };
static unsigned char incoming[LENGTH], outgoing[LENGTH];

static void exchange(void) {
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[2];
        MPI_Irecv(incoming, LENGTH, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(outgoing, LENGTH, MPI_BYTE, (rank + 1) % size, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// Resident KiB of the address space, but for pages of files: code that runs for the first time.
static long resident(void) {
    char line[200];
    long kib = 0, some, parts = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "Pss_Anon: %ld", &some) == 1 || sscanf(line, "Pss_Shmem: %ld", &some) == 1) {
            kib += some;
            parts++;
        }
    fclose(file);
    CHECK_EQ(parts, 2);
    return kib;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    memset(outgoing, rank, LENGTH);
    CHECK_EQ(MPIX_Progress_set(MPI_COMM_WORLD, "none"), MPI_SUCCESS);
    exchange();
    resident();
    // The last ones first: the threads of the helpers, which have most, find no pages that others have left.
    for (int i = POLICY_COUNT - 1; i >= 0; i--) {
        exchange();
        long before = resident();
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_EQ(MPIX_Progress_set(MPI_COMM_WORLD, policy_names[i]), MPI_SUCCESS);
        exchange();
        long added = (resident() - before) / size;
        if (rank == 0) {
            printf("%s %ld KiB\n", policy_names[i], added);
            fflush(stdout);
            CHECK(added < LIMIT_KIB);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_EQ(MPIX_Progress_set(MPI_COMM_WORLD, "none"), MPI_SUCCESS);
    }
    return finish();
}
