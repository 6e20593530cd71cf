// A rank's exit code after MPI_Finalize is the job's.
//# ranks: 1 4
//# exit: 3
//# timeout: 10
#include "check.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Finalize();
    return rank == size - 1 ? 3 : 0;
}
