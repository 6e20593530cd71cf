// MPI_Abort on a communicator that is not the world: its processes at least end, here the whole job (MPI 4.1 9.7
// allows both), with the code, and the line names the communicator.
//# ranks: 3
//# exit: 7
//# stderr: called MPI_Abort on a part with code 7
#include "check.h"

int main(int argc, char **argv) {
    MPI_Comm part;
    start(&argc, &argv);
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &part);
    MPI_Comm_set_name(part, "a part");
    if (rank == 2) MPI_Abort(part, 7);
    // One that aborts is in this one's part, and one is not.
    MPI_Barrier(rank == 0 ? MPI_COMM_WORLD : part);
    puts("a rank went on");
    return 0;
}
