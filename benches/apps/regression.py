"""Least squares by gradients, with NumPy: each rank has a part of the data, and all add up their gradients.

    pip-exec -n 4 python benches/apps/regression.py [balanced|imbalanced] [steps]

Imbalanced: odd ranks have three times the data of even ones. The data are made of known coefficients, which must be
found.
"""

import sys

import numpy as np
from mpi4py import MPI

SAMPLES, FEATURES = 24000, 128
world = MPI.COMM_WORLD


def my_part(weight):
    """The rows of this rank; a row does not depend on who makes it."""
    weights = np.where(np.arange(world.size) % 2, weight, 1)
    ends = [0, *(np.cumsum(weights) * SAMPLES // weights.sum())]
    rows = np.arange(ends[world.rank], ends[world.rank + 1])[:, None]
    # Digits that look random, with a mean of nearly zero and a variance of nearly one.
    return np.sqrt(12) * ((rows * 0.7548776662 + rows * np.arange(1, FEATURES + 1) * 0.5698402910) % 1 - 0.5)


def main():
    weight = 3 if "imbalanced" in sys.argv[1:] else 1
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    data = my_part(weight)
    known = np.cos(np.arange(FEATURES))
    values = data @ known
    found, gradient = np.zeros(FEATURES), np.zeros(FEATURES)
    world.Barrier()
    begin = MPI.Wtime()
    for _ in range(steps):
        world.Allreduce(data.T @ (data @ found - values), gradient)
        found -= 0.8 / SAMPLES * gradient
    seconds = MPI.Wtime() - begin
    error = np.abs(found - known).max()
    alike = world.allreduce(float(found.sum()), MPI.MAX) == world.allreduce(float(found.sum()), MPI.MIN)
    if world.rank == 0:
        print(f"regression: {seconds:.4f} s, {'right' if error < 1e-3 and alike else 'WRONG'} (error {error:.1e})")
    sys.exit(0 if error < 1e-3 and alike else 1)


if __name__ == "__main__":
    main()
