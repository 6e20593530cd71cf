"""Objects, arrays, communicators and windows of mpi4py."""
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
values = [world.allreduce(rank + 1), world.allgather({"rank": rank, "text": "x" * rank})]
values.append(world.sendrecv([rank] * 3, (rank + 1) % size, source=(rank - 1) % size)[0] == (rank - 1) % size)
numbers, sums = array("d", [rank + 0.5] * 1000), array("d", [0.0] * 1000)
world.Allreduce(numbers, sums, op=MPI.SUM)
values.append(sums[-1])
half = world.Split(rank % 2, -rank)
values.append(half.allreduce(rank, op=MPI.MAX))
window = MPI.Win.Allocate(8 * size, 8, comm=world)
window.Fence()
for other in range(size):
    window.Put([array("d", [rank + other / 8]), MPI.DOUBLE], other, rank)
window.Fence()
values.append(list(memoryview(window.tomemory()).cast("d")))
window.Free()
pending = [world.Irecv(array("i", [0]), source, 7) for source in range(size)]
for other in range(size):
    world.Send(array("i", [rank]), other, 7)
MPI.Request.Waitall(pending)
operation = MPI.Op.Create(lambda a, b, _: memoryview(b).cast("d").__setitem__(
    0, max(memoryview(a).cast("d")[0], memoryview(b).cast("d")[0])), commute=True)
most = array("d", [0.0])
world.Allreduce(array("d", [float(rank)]), most, op=operation)
values.append(most[0])
for turn in range(size):
    world.Barrier()
    if turn == rank:
        print("values", rank, values, flush=True)
