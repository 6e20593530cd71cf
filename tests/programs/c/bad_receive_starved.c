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
#include "check.h"
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    enum { LENGTH = 3000000, GOOD = 40960 };
    start(&argc, &argv);
    char *data = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(data != MAP_FAILED);
    memset(data, rank, LENGTH);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        struct rlimit few = {3, 3};
        CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
        syscall(SYS_close_range, 3, ~0U, 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send(data, LENGTH, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    } else {
        CHECK(mprotect(data + GOOD, LENGTH - GOOD, PROT_READ) == 0);
        MPI_Request request;
        MPI_Irecv(data, LENGTH, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
