// MPI_Win_start of a shared window waits for the exposure: the caller may load what the target has stored before it,
// and store what the target reads behind MPI_Win_wait. The nonblocking form does not wait.
//# ranks: 2 3
//# abi: mpi5
//# nodes: no
#include "check.h"
#include <unistd.h>

int main(int argc, char **argv) {
    start(&argc, &argv);
    int *mine, *first, unit;
    MPI_Aint bytes;
    MPI_Win win;
    MPI_Group world, others, target;
    MPI_Win_allocate_shared(16 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
    MPI_Win_shared_query(win, 0, &bytes, &unit, &first);
    int zero = 0;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &zero, &target);
    MPI_Group_excl(world, 1, &zero, &others);
    for (int round = 1; round <= 20; round++) {
        if (rank == 0) {
            // Those who do not wait see what was there before.
            if (round % 4 == 1) usleep(2000);
            for (int i = 0; i < 16; i++) mine[i] = round;
            MPI_Win_post(others, 0, win);
            MPI_Win_wait(win);
            for (int from = 1; from < size; from++) CHECK_EQ(mine[from], round + 100 * from);
            continue;
        }
        if (round % 2) {
            CHECK_EQ(MPI_Win_start(target, 0, win), MPI_SUCCESS);
            CHECK_EQ(first[0], round);
            CHECK_EQ(first[rank], round);
            first[rank] = round + 100 * rank;
        } else {
            MPI_Request request;
            CHECK_EQ(MPIX_Win_istart(target, 0, win, &request), MPI_SUCCESS);
            CHECK_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
            int value = round + 100 * rank;
            CHECK_EQ(MPI_Put(&value, 1, MPI_INT, 0, rank, 1, MPI_INT, win), MPI_SUCCESS);
        }
        CHECK_EQ(MPI_Win_complete(win), MPI_SUCCESS);
    }
    // A group with nobody in it waits for nobody.
    CHECK_EQ(MPI_Win_start(MPI_GROUP_EMPTY, 0, win), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_complete(win), MPI_SUCCESS);
    // Who has promised that the exposure is there is believed.
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) MPI_Win_post(others, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank > 0) CHECK_EQ(MPI_Win_start(target, MPI_MODE_NOCHECK, win), MPI_SUCCESS);
    if (rank > 0) CHECK_EQ(MPI_Win_complete(win), MPI_SUCCESS);
    if (rank == 0) MPI_Win_wait(win);
    MPI_Group_free(&target);
    MPI_Group_free(&others);
    MPI_Group_free(&world);
    MPI_Win_free(&win);
    return finish();
}
