"""An exception in one rank, for whose message the others wait."""

from mpi4py import MPI

comm = MPI.COMM_WORLD
if comm.rank == 1:
    raise ValueError("rank 1 has had enough")
comm.Recv([bytearray(8), MPI.BYTE], source=1, tag=3)
