// A message that is too long ends the job with a line that says whose it was.
//# ranks: 2
//# exit: 15
//# stderr: MPI_ERR_TRUNCATE
//# stderr: the message from rank 0 with tag 77 has 36 bytes, its buffer 32
#include "check.h"

int main(int argc, char **argv) {
    int data[9] = {0};
    start(&argc, &argv);
    MPI_Request request;
    if (rank == 0) {
        MPI_Send(data, 9, MPI_INT, 1, 77, MPI_COMM_WORLD);
    } else {
        MPI_Irecv(data, 8, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
