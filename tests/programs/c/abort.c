// MPI_Abort in one rank ends the ranks that wait, with its code.
//# ranks: 1 2 4
//# progress: steal, none, thread, signal
//# wait: auto, park
//# exit: 42
//# timeout: 10
#include "check.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (rank == size - 1) MPI_Abort(MPI_COMM_WORLD, 42);
    int never;
    MPI_Recv(&never, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 1;
}
