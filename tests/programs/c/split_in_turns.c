// The parts of a communicator that was split meet each for itself, at different times.
//# ranks: 5
#include "check.h"
#include <unistd.h>

int main(int argc, char **argv) {
    int word = 0;
    MPI_Comm part;
    start(&argc, &argv);
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2, 0, &part);
    if (rank < 2) usleep(100000);
    if (rank > 3) usleep(300000);
    if (rank == 2) MPI_Recv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(part);
    if (rank == 1) MPI_Send(&word, 1, MPI_INT, 2, 0, MPI_COMM_WORLD);
    MPI_Comm_free(&part);
    return finish();
}
