"""A file that all ranks write and read."""
import h5py
import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
with h5py.File("data.h5", "w", driver="mpio", comm=world) as file:
    data = file.create_dataset("data", (world.size, 100), dtype="f8")
    data[world.rank] = np.arange(100) + world.rank
with h5py.File("data.h5", "r", driver="mpio", comm=world) as file:
    print("values", world.rank, file["data"][:].sum(), flush=True)
