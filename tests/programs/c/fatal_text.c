// A fatal error names the rank, the function, the communicator, and the argument that is wrong.
//# ranks: 1 2
//# exit: 6
//# stderr: rank 0: MPI_Send failed on halo: MPI_ERR_RANK: invalid rank: the destination is 99, ranks here are 0 to
#include "check.h"

int main(int argc, char **argv) {
    MPI_Comm halo;
    start(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &halo);
    MPI_Comm_set_name(halo, "halo");
    if (rank == 0) MPI_Send(&rank, 1, MPI_INT, 99, 0, halo);
    return finish();
}
