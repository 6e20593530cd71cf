// What is said when members disagree names two of them, and what both have called.
//# ranks: 3
//# exit: 40
//# settings: COHORT_CHECK=members
//# stderr: rank 0: MPI_Bcast, root 0, 4 MPI_INT; rank 1: MPI_Bcast, root 1, 4 MPI_INT
#include "check.h"

int main(int argc, char **argv) {
    int data[4] = {0};
    start(&argc, &argv);
    MPI_Bcast(data, 4, MPI_INT, rank == 1, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
