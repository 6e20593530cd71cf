// What is said about a message of other types than its receive names both ranks, the tag and the types.
//# ranks: 2
//# exit: 3
//# settings: COHORT_CHECK=members
//# nodes: no
// Messages between nodes carry no types.
//# stderr: rank 1: MPI_Recv failed
//# stderr: the 16 bytes of the message from rank 0 with tag 77 are of MPI_INT, the receive is of MPI_FLOAT
#include "check.h"

int main(int argc, char **argv) {
    int data[4] = {0};
    start(&argc, &argv);
    if (rank == 0) MPI_Send(data, 4, MPI_INT, 1, 77, MPI_COMM_WORLD);
    else MPI_Recv(data, 4, MPI_FLOAT, 0, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
