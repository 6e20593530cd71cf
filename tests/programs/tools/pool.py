"""A pool of processes of mpi4py, started by one process: pool.py"""

from mpi4py.futures import MPIPoolExecutor


def square(number):
    return number * number


if __name__ == "__main__":
    for workers in (1, 3):
        with MPIPoolExecutor(workers) as pool:
            assert list(pool.map(square, range(200), chunksize=7)) == [n * n for n in range(200)]
            try:
                pool.submit(square, "text").result()
            except TypeError:
                pass
            else:
                raise SystemExit("an error of a task was lost")
    print("passed")
