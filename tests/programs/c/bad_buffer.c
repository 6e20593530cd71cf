// A send of memory that nobody may read kills the rank that sends, not the one that copies, and is said to be a send.
//# ranks: 2 3
//# progress: none steal
//# nodes: no
// Between nodes the kernel or the sender's transport reads, and says so.
//# exit: 139
//# stderr: rank 1 (pid
//# stderr: signal 11 (SIGSEGV)
//# stderr: in memory of: nobody: it is protected (PROT_NONE)
//# stderr: MPI accessed it: it is in the buffer of a send of this rank
#include "check.h"
#include <sys/mman.h>
enum { LENGTH = 1 << 22 };

int main(int argc, char **argv) {
    start(&argc, &argv);
    char *buffer = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(buffer != MAP_FAILED);
    if (rank == 0) MPI_Recv(buffer, LENGTH, MPI_CHAR, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) {
        CHECK_EQ(mprotect(buffer, LENGTH, PROT_NONE), 0);
        MPI_Send(buffer, LENGTH, MPI_CHAR, 0, 7, MPI_COMM_WORLD);
    }
    return finish();
}
