"""Files that all ranks write and read: rows of one rank each, columns that interleave, chunks, an attribute."""
import h5py
import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
with h5py.File("data.h5", "w", driver="mpio", comm=world) as file:
    rows = file.create_dataset("rows", (size, 100), dtype="f8")
    rows[rank] = np.arange(100) + rank
    columns = file.create_dataset("group/columns", (64, 8 * size), dtype="i4")
    with columns.collective:
        columns[:, rank::size] = np.arange(512).reshape(64, 8) * size + rank
    chunks = file.create_dataset("chunks", (40, 30), dtype="i8", chunks=(7, 30), fillvalue=-1)
    with chunks.collective:
        chunks[rank::2 * size, 3:17] = rank + 1
    file.attrs["ranks"] = size
with h5py.File("data.h5", "r", driver="mpio", comm=world) as file:
    with file["group/columns"].collective:
        columns = file["group/columns"][(rank + 1) % size::size, :]
    read = (file["rows"][:].sum(), columns.sum(), file["chunks"][:].sum(), file.attrs["ranks"])
    print("values", rank, *read, flush=True)
