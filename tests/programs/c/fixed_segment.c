/* Ranks that attach segments at the same address: without SHM_REMAP the call fails, as the kernel has it, and a line
 * says whose memory lies there. With it the rank is ended before it takes that from the other. */
//# ranks: 2 4
//# abi: mpich mpi5 openmpi
//# exit: 2
//# stderr: maps memory at the fixed address 0x200000000000 (shmat), where rank 0 has mapped already
//# stderr: maps memory at the fixed address 0x200000000000 (shmat with SHM_REMAP), where rank 0 has mapped already
//# stderr: pip-exec --isolate gives each one of its own
//# nodes: no
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <sys/shm.h>

int main(int argc, char **argv)
{
    start(&argc, &argv);
    void *at = (void *)0x200000000000;
    int segment = shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600);
    /* It goes with the last process that has attached it. */
    CHECK(segment >= 0 && shmat(segment, NULL, 0) != (void *)-1 && shmctl(segment, IPC_RMID, NULL) == 0);
    if (rank == 0) CHECK(shmat(segment, at, 0) == at);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) CHECK(shmat(segment, at, 0) == (void *)-1 && errno == EINVAL);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) shmat(segment, at, SHM_REMAP);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
