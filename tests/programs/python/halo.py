"""Ring exchange with Isend/Irecv and Allreduce on NumPy arrays, contiguous and strided."""

import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
left, right = (rank - 1) % size, (rank + 1) % size

for count in (1, 1000, 300_000):
    out = numpy.arange(count, dtype="d") + rank
    halo = numpy.full(count, -1.0)
    requests = [world.Irecv(halo, left, 1), world.Isend(out, right, 1)]
    MPI.Request.Waitall(requests)
    assert (halo == numpy.arange(count) + left).all()

    total = numpy.empty(count)
    world.Allreduce(out, total, MPI.SUM)
    assert (total == size * numpy.arange(count) + size * (size - 1) / 2).all()

square = numpy.arange(90_000, dtype="i4").reshape(300, 300) + rank
column = MPI.INT32_T.Create_vector(300, 1, 300).Commit()
received = numpy.zeros((300, 300), dtype="i4")
world.Sendrecv([square, 1, column], right, 2, [received, 1, column], left, 2)
assert (received[:, 0] == numpy.arange(300) * 300 + left).all()
assert (received[:, 1:] == 0).all()
column.Free()

objects = world.allgather({"rank": rank, "name": "x" * rank})
assert [entry["rank"] for entry in objects] == list(range(size))
if rank == 0:
    print("passed")
