"""What allocation costs ranks that run Python: lists, bytes, and NumPy's arrays where it is installed.

Prints for each measurement "name: microseconds system-microseconds faults" of each time, the mean over the ranks.
"""

import resource
import time

from mpi4py import MPI

WORLD = MPI.COMM_WORLD


def measure(name, count, work):
    work()
    WORLD.Barrier()
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    for _ in range(count):
        work()
    taken, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    mine = (taken * 1e6, (after.ru_stime - before.ru_stime) * 1e6, after.ru_minflt - before.ru_minflt)
    all_ranks = WORLD.gather(mine)
    if all_ranks:
        means = (sum(values) / len(values) / count for values in zip(*all_ranks))
        print(f"{name}:", *(f"{value:.3f}" for value in means))


def main():
    measure("list of 100000", 10, lambda: [str(number) for number in range(100000)])
    measure("bytes of 1 MB", 200, lambda: bytes(1 << 20) + b"x")
    try:
        import numpy
    except ImportError:
        return
    for kilobytes, count in ((64, 500), (1 << 10, 100), (8 << 10, 20), (64 << 10, 2)):
        array = numpy.ones(kilobytes * 128)
        measure(f"NumPy {kilobytes} KB", count, lambda array=array: (array * 2.0 + array) - 1.0)


main()
