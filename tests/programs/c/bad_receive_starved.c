// A receive whose buffer cannot be written kills a rank, with the address, also if its process has no descriptors for
// the network, so that its node's launcher reads for it.
//# ranks: 2
//# progress: none
//# policies: listed
// Under others a rank that helps may be the one that is killed.
//# nodes: sockets
// libfabric calls the memory bad, and the connection lost.
//# exit: 139
//# stderr: signal 11 (SIGSEGV)
//# stderr: protected (PROT_READ)
//# stderr: MPI accessed it
#include "protected.h"
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    enum { LENGTH = 3000000, GOOD = 40960 };
    start(&argc, &argv);
    char *data = pages_of(LENGTH);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        struct rlimit few = {3, 3};
        CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
        syscall(SYS_close_range, 3, ~0U, 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    receive_too_much(data, LENGTH, GOOD);
    MPI_Finalize();
    return 0;
}
