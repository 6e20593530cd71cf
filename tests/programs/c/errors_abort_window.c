// MPI_ERRORS_ABORT on a window ends the processes of the window's group (MPI 4.1 9.3), as MPI_Abort on a communicator
// of that group would; the others go on and finalise.
//# ranks: 4 5
//# progress: steal, none
//# exit: 6
//# stdout: the others passed
//# stderr: MPI_Put failed on the doomed: MPI_ERR_RANK
// Between nodes the whole job ends, as MPI_Abort may do.
//# nodes: no
#include "check.h"

int main(int argc, char **argv) {
    MPI_Comm part;
    MPI_Win win;
    int data = 0, memory = 0, members, me;
    start(&argc, &argv);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
    MPI_Comm_rank(part, &me);
    MPI_Comm_size(part, &members);
    MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, part, &win);
    if (rank % 2) {
        MPI_Win_set_name(win, "the doomed");
        MPI_Win_set_errhandler(win, MPI_ERRORS_ABORT);
        MPI_Win_fence(0, win);
        if (me == members - 1) MPI_Put(&data, 1, MPI_INT, members, 0, 1, MPI_INT, win);
        MPI_Win_fence(0, win);
        puts("a doomed rank went on");
        MPI_Abort(MPI_COMM_WORLD, 99);
    }
    for (int i = 0; i < 20; i++) MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    if (rank == 0) puts("the others passed");
    MPI_Finalize();
    return 0;
}
