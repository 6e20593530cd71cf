"""A rank that waits, one that computes, and one that crashes if it is told to: each in a function of its own."""

import ctypes
import sys

from mpi4py import MPI


def wait(comm):
    comm.recv(source=1, tag=3)


def compute():
    total = 0
    while True:
        total += 1


def crash():
    ctypes.string_at(0)


def main(comm):
    if comm.rank == 0:
        wait(comm)
    elif len(sys.argv) > 1:
        crash()
    else:
        compute()


main(MPI.COMM_WORLD)
