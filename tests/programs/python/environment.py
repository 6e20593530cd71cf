"""Loads the library of MPICH's ABI that is named, and changes the environment before and after: MPI reads variables
later, and the C library frees the list that it has replaced."""
import ctypes
import os
import sys
import tempfile

SELF, NO_INFO, CREATE, READ_WRITE, DELETE = 0x44000001, 0x1C000000, 1, 8, 16

os.environ["BEFORE"] = "1"
mpi = ctypes.CDLL(sys.argv[1])
mpi.MPI_Init(None, None)
kept = []
for number in range(2000):
    os.environ[f"AFTER_{number}"] = "x" * 100
    kept.append(ctypes.create_string_buffer(b"\xff" * 4096))
file = ctypes.c_void_p()
name = os.path.join(tempfile.mkdtemp(), "file").encode()
error = mpi.MPI_File_open(SELF, name, CREATE | READ_WRITE | DELETE, NO_INFO, ctypes.byref(file))
mpi.MPI_File_close(ctypes.byref(file))
os.rmdir(os.path.dirname(name))
mpi.MPI_Finalize()
print("opened" if error == 0 else error)
