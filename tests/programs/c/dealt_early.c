// In a nonblocking gather and scatter of short blocks a member waits for nobody but the root, or for nobody: each takes
// its part, and ends it, before the next one begins.
//# ranks: 4 6
//# progress: none steal
#include "check.h"

enum { ROUNDS = 30, MOST = 8 };

static void await_turn(int from) {
    MPI_Recv(NULL, 0, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void pass_on(int to) { MPI_Send(NULL, 0, MPI_INT, to, 7, MPI_COMM_WORLD); }

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK(size <= MOST);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        int own[2] = {rank, round}, all[2 * MOST];
        // The root of the scatter is the first, that of the gather the last.
        for (int i = 0; rank == 0 && i < size; i++) all[2 * i] = i + 100, all[2 * i + 1] = round;
        int part[2] = {-1, -1};
        if (rank > 0) await_turn(rank - 1);
        MPI_Iscatter(all, 2, MPI_INT, part, 2, MPI_INT, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(part[0] == rank + 100 && part[1] == round);
        MPI_Igather(own, 2, MPI_INT, all, 2, MPI_INT, size - 1, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; rank == size - 1 && i < size; i++) CHECK(all[2 * i] == i && all[2 * i + 1] == round);
        if (rank + 1 < size) pass_on(rank + 1);
    }
    return finish();
}
