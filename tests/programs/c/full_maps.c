/* Ranks share the number of mappings that an address space may have: who finds none left is told so, and so is who
   reads why the job has ended. */
//# ranks: 2
//# abi: mpich mpi5 openmpi
//# exit: 3
//# stderr: bytes (mprotect): the ranks of the node share an address space
//# stderr: memory map entries together
//# nodes: no
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    start(&argc, &argv);
    long page = sysconf(_SC_PAGESIZE), pages = 1 << 21, made = 0;
    if (rank == 1) {
        char *place = mmap(NULL, pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        CHECK(place != MAP_FAILED);
        /* Every other page is a mapping of its own. */
        while (made < pages && mprotect(place + made * page, page, PROT_READ) == 0) made += 2;
        if (made < pages) {
            CHECK(errno == ENOMEM);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return finish();
}
