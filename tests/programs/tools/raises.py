"""An exception in one rank, for whose message the others wait."""

import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
data = numpy.zeros(1)
if comm.rank == 1:
    raise ValueError("rank 1 has had enough")
comm.Recv(data, source=1, tag=3)
