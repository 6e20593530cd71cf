// MPI_ERRORS_ARE_FATAL on a communicator of a part of the ranks ends all connected processes (MPI 4.1 9.3), also those
// outside of it.
//# ranks: 3
//# exit: 6
//# stderr: MPI_Send failed on a part: MPI_ERR_RANK
//# stderr: MPI_ERRORS_ARE_FATAL
#include "check.h"

int main(int argc, char **argv) {
    MPI_Comm part;
    int data = 0;
    start(&argc, &argv);
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &part);
    MPI_Comm_set_name(part, "a part");
    if (rank == 2) MPI_Send(&data, 1, MPI_INT, 2, 0, part);
    MPI_Barrier(MPI_COMM_WORLD);
    puts("a rank went on");
    return 0;
}
