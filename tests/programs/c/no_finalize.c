// A rank that ends between MPI_Init and MPI_Finalize strands its peers: the job ends with an
// error that says so.
//# ranks: 2 4
//# exit: 1
//# stderr: MPI_Finalize
//# timeout: 10
#include "check.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (rank == 1) exit(0);
    int never;
    MPI_Recv(&never, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 2;
}
