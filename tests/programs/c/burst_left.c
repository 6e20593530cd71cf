// Short messages that follow each other quickly may go together. The last of them arrives although their sender makes
// no further MPI call before it has: it waits for a file of the receiver's.
//# ranks: 2
//# progress: none steal
// libfabric's networks move nothing between calls.
//# nodes: sockets
#include "check.h"
#include <unistd.h>

int main(int argc, char **argv) {
    enum { ROUNDS = 20, MOST = 60 };
    start(&argc, &argv);
    char path[64];
    if (rank == 0) snprintf(path, sizeof path, "/tmp/burst_left.%d", (int)getpid());
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        int count = round < 10 ? round + 1 : MOST;
        long values[MOST];
        MPI_Request requests[MOST];
        if (rank == 0) {
            for (int i = 0; i < count; i++) values[i] = round * 1000 + i;
            for (int i = 0; i < count; i++) {
                MPI_Isend(&values[i], 1, MPI_LONG, 1, i % 3, MPI_COMM_WORLD, &requests[i]);
            }
            int waits = 0;
            for (; access(path, F_OK) != 0 && waits < 20000; waits++) usleep(1000);
            CHECK(waits < 20000);
            unlink(path);
            MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        } else if (rank == 1) {
            for (int i = 0; i < count; i++) {
                MPI_Recv(&values[i], 1, MPI_LONG, 0, i % 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
            for (int i = 0; i < count; i++) CHECK(values[i] == round * 1000 + i);
            FILE *file = fopen(path, "w");
            CHECK(file != NULL);
            fclose(file);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
