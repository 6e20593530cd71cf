"""Jacobi's method on a plate, with NumPy: rows are shared, and the outer ones travel while the others are computed.

    pip-exec -n 4 python benches/apps/jacobi.py [balanced|imbalanced] [steps]

Imbalanced: odd ranks have three times the rows of even ones. No heat may be lost.
"""

import sys

import numpy as np
from mpi4py import MPI

ROWS, COLUMNS, FLOW = 512, 4096, 0.2
world = MPI.COMM_WORLD


def shares(weight):
    """The first row of each rank, and the end."""
    weights = np.where(np.arange(world.size) % 2, weight, 1)
    ends = np.cumsum(weights) * ROWS // weights.sum()
    return [0, *map(int, ends)]


def update(plate, first, end):
    """The new values of rows `first` to `end`; the plate's edges let no heat out."""
    mid = plate[first:end]
    new = mid + FLOW * (plate[first - 1:end - 1] + plate[first + 1:end + 1] - 2 * mid)
    across = FLOW * (mid[:, 1:] - mid[:, :-1])
    new[:, :-1] += across
    new[:, 1:] -= across
    return new


def advance(plate):
    """One step. Row 0 and the last row are the neighbours'."""
    up = world.rank - 1 if world.rank > 0 else MPI.PROC_NULL
    down = world.rank + 1 if world.rank + 1 < world.size else MPI.PROC_NULL
    plate[0], plate[-1] = plate[1], plate[-2]
    requests = [world.Irecv(plate[0], up, 0), world.Irecv(plate[-1], down, 1),
                world.Isend(plate[-2], down, 0), world.Isend(plate[1], up, 1)]
    inside = update(plate, 2, len(plate) - 2)
    MPI.Request.Waitall(requests)
    first, last = update(plate, 1, 2), update(plate, len(plate) - 2, len(plate) - 1)
    plate[2:-2], plate[1:2], plate[-2:-1] = inside, first, last


def main():
    weight = 3 if "imbalanced" in sys.argv[1:] else 1
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    begins = shares(weight)
    rows = np.arange(begins[world.rank], begins[world.rank + 1])
    plate = np.zeros((len(rows) + 2, COLUMNS))
    plate[1:-1] = (rows[:, None] * 37 + np.arange(COLUMNS) * 11) % 1000
    before = world.allreduce(plate[1:-1].sum())
    world.Barrier()
    begin = MPI.Wtime()
    for _ in range(steps):
        advance(plate)
    world.Barrier()
    seconds = MPI.Wtime() - begin
    lost = abs(world.allreduce(plate[1:-1].sum()) - before) / before
    if world.rank == 0:
        print(f"jacobi: {seconds:.4f} s, {'right' if lost < 1e-10 else 'WRONG'} ({lost:.1e} of the heat lost)")
    sys.exit(0 if lost < 1e-10 else 1)


if __name__ == "__main__":
    main()
