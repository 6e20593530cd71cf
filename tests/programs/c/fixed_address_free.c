/* Ranks that map memory at the same address if it is free: one gets it, the others an error, and it is said once why.
 * */
//# ranks: 2 4
//# abi: mpich mpi5 openmpi
//# stderr: (mmap with MAP_FIXED_NOREPLACE), where rank
//# nodes: no
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
    int have, all;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int *at = (int *)0x200000000000;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    have = mmap(at, 1 << 20, PROT_READ | PROT_WRITE, flags, -1, 0) == at;
    CHECK(have || errno == EEXIST);
    if (have)
        *at = rank;
    MPI_Allreduce(&have, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(all, 1);
    CHECK(!have || *at == rank);
    MPI_Finalize();
    return 0;
}
