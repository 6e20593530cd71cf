/* Ranks that map memory at the same fixed address are told whose it is, before one takes it from the other. */
//# ranks: 2 4
//# abi: mpich mpi5 openmpi
//# exit: 2
//# stderr: maps memory at the fixed address 0x200000000000 (mmap with MAP_FIXED), where rank
//# stderr: pip-exec --isolate gives each one of its own
//# nodes: no
#define _GNU_SOURCE
#include "check.h"
#include <sys/mman.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    void *at = (void *)0x200000000000;
    mmap(at, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
