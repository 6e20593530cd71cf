"""A pool of two workers, started by rank 0 where its node has room for one, says which nodes they are on."""

import time

from mpi4py import MPI
from mpi4py.futures import MPIPoolExecutor


def where(_):
    time.sleep(0.02)
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip(), MPI.COMM_WORLD.rank


if __name__ == "__main__":
    if MPI.COMM_WORLD.rank == 0:
        with MPIPoolExecutor(max_workers=2) as pool:
            print("workers:", sorted(set(pool.map(where, range(40)))), flush=True)
