/* Ranks that reserve more than the address space has which they share are told that it is full. */
//# ranks: 8
//# abi: mpich mpi5 openmpi
//# stderr: cohort: rank
//# stderr: finds no room for 65970697666560 bytes (mmap): the ranks of the node share an address space
//# stderr: pip-exec --isolate gives each one of its own
//# nodes: no
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
    start(&argc, &argv);
    size_t much = 60UL << 40;
    void *place = mmap(NULL, much, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int is_full = place == MAP_FAILED, all;
    CHECK(!is_full || errno == ENOMEM);
    MPI_Allreduce(&is_full, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all > 0);
    if (!is_full) CHECK(munmap(place, much) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    /* There is room again. */
    if (rank == 0) CHECK((place = mmap(NULL, much, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))
                         != MAP_FAILED);
    return finish();
}
