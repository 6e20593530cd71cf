"""Communicators of mpi4py in a Fortran module that f2py has made of totals.f90."""

from mpi4py import MPI

import totals

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
assert totals.totals(MPI.COMM_NULL.py2f(), 1.5) == (0, 0)
assert totals.totals(world.py2f(), 1.5 + rank) == (1.5 * size + size * (size - 1) / 2, size)
part = world.Split(rank % 2, rank)
assert totals.totals(part.py2f(), 1.0) == (part.size, part.size)
assert MPI.Comm.f2py(part.py2f()) == part
part.Free()
print(f"done {rank}")
