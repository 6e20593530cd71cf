"""A process without a launcher whose C library gives memory back while those that it has spawned use theirs."""

import ctypes
import sys

from mpi4py import MPI

CHILD = """
from mpi4py import MPI
parent = MPI.Comm.Get_parent()
parent.recv()
kept = [bytes(1000) for _ in range(20000)]
parent.send(sum(map(len, kept)), 0)
parent.Disconnect()
"""

libc = ctypes.CDLL("libc.so.6")
libc.sbrk.restype = ctypes.c_void_p


def spawn():
    return MPI.COMM_SELF.Spawn(sys.executable, args=["-c", CHILD], maxprocs=2)


def await_end(children):
    for child in range(2):
        children.send(None, child)
    assert [children.recv(source=child) for child in range(2)] == [20_000_000] * 2
    children.Disconnect()


heap = [bytes(200 + number % 50) for number in range(200000)]
first = spawn()
end = libc.sbrk(0)
del heap
libc.malloc_trim(0)
assert libc.sbrk(0) == end, "the break has moved, and the heaps of others may take what was behind it"
second = spawn()
heap = [bytes(200 + number % 50) for number in range(400000)]
await_end(first)
await_end(second)
assert all(len(text) == 200 + number % 50 and not any(text) for number, text in enumerate(heap))
print("passed")
