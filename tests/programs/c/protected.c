// A program protects a buffer of a message that is under way, for good. The rank whose buffer it is dies, whoever would
// have copied, and what is said names it and the call that gave the buffer.
//# ranks: 2 3
//# progress: none steal
//# nodes: no
// Between nodes the kernel or the receiver's transport writes.
//# exit: 139
//# stderr: rank 1 (pid
//# stderr: signal 11 (SIGSEGV)
//# stderr: in memory of: nobody: it is protected (PROT_NONE)
//# stderr: MPI accessed it: it is in the buffer of a receive of this rank
#include "check.h"
#include <sys/mman.h>
enum { LENGTH = 1 << 22 };

int main(int argc, char **argv) {
    start(&argc, &argv);
    char *buffer = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(buffer != MAP_FAILED);
    memset(buffer, rank, LENGTH);
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 1) {
        MPI_Irecv(buffer, LENGTH, MPI_CHAR, 0, 7, MPI_COMM_WORLD, &request);
        CHECK_EQ(mprotect(buffer, LENGTH, PROT_NONE), 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) MPI_Send(buffer, LENGTH, MPI_CHAR, 1, 7, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return finish();
}
