// A color that MPI_Comm_split does not take is named.
//# ranks: 1 2
//# exit: 13
//# stderr: MPI_Comm_split failed on MPI_COMM_WORLD: MPI_ERR_ARG
//# stderr: the color is -3, which is neither MPI_UNDEFINED nor 0 or more
#include "check.h"

int main(int argc, char **argv) {
    MPI_Comm part;
    start(&argc, &argv);
    MPI_Comm_split(MPI_COMM_WORLD, -3, 0, &part);
    return finish();
}
