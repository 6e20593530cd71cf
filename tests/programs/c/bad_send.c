// A send whose buffer ends too early kills a rank, with the address: also where the system reads the data.
//# ranks: 2
//# progress: none
//# policies: listed
// Under others a rank that helps may be the one that is killed.
//# nodes: sockets
// libfabric calls the memory bad, and the connection lost.
//# exit: 139
//# stderr: signal 11 (SIGSEGV)
//# stderr: protected (PROT_NONE)
//# stderr: MPI accessed it
#include "protected.h"

int main(int argc, char **argv) {
    enum { LENGTH = 3000000, GOOD = 40960 };
    start(&argc, &argv);
    char *data = pages_of(LENGTH);
    MPI_Request request;
    if (rank == 0) {
        CHECK(mprotect(data + GOOD, LENGTH - GOOD, PROT_NONE) == 0);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Isend(data, LENGTH, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
    } else {
        MPI_Irecv(data, LENGTH, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
