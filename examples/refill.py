# A sum whose terms the ranks share, as refill.c, in Python: ranks die at random; after each death the others shrink,
# spawn as many as are missing, merge with them, and go on with the term at which they were.
#
#     pip-exec --on-failure continue -n 4 python3 examples/refill.py [seed]
#
# mpi4py for Open MPI has what is needed. Rank 0, which lives, has added a term only if all have given theirs, so what
# it knows is what all are told. comm.allreduce(object) would not do: mpi4py has a communicator of its own for that,
# which nobody revokes.
import array
import os
import random
import signal
import sys

from mpi4py import MPI

TERMS, DEATHS = 60, 3


def is_of_failure(error):
    return error.Get_error_class() in (MPI.ERR_PROC_FAILED, MPI.ERR_REVOKED)


def abort(error):
    print(error, file=sys.stderr)
    MPI.COMM_WORLD.Abort(1)


def refill(comm, state):
    """Brings the communicator back to the wanted number of ranks, and has all of them know the same. New ranks come
    here with no communicator."""
    if comm is None:
        everyone = MPI.Comm.Get_parent().Merge(high=True)
    else:
        comm.Revoke()
        left = comm.Shrink()
        missing = state["ranks"] - left.size
        children = left.Spawn(sys.executable, [os.path.abspath(__file__)], maxprocs=missing)
        everyone = children.Merge(high=False)
        state["deaths"] += missing
    everyone.Set_errhandler(MPI.ERRORS_RETURN)
    # Nobody dies before all have merged.
    everyone.Agree(1)
    # Others may have added a term more, or less. If one of them has gone on and died already, all begin anew.
    try:
        state.update(everyone.bcast(state, root=0))
    except MPI.Exception as error:
        return refill(everyone, state) if is_of_failure(error) else abort(error)
    return everyone


def main():
    world = MPI.COMM_WORLD
    world.Set_errhandler(MPI.ERRORS_RETURN)
    state = {"terms": 0, "sum": 0, "ranks": world.size, "deaths": 0}
    chance = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else None)
    comm = world
    if MPI.Comm.Get_parent() != MPI.COMM_NULL:
        comm = refill(None, state)
    while state["terms"] < TERMS:
        if comm.rank == 1 + chance.randrange(3 * comm.size) and state["deaths"] < DEATHS:
            os.kill(os.getpid(), signal.SIGKILL)
        mine, total = array.array("l", [(state["terms"] + 1) * (comm.rank + 1)]), array.array("l", [0])
        try:
            comm.Allreduce(mine, total)
        except MPI.Exception as error:
            comm = refill(comm, state) if is_of_failure(error) else abort(error)
            continue
        state["terms"] += 1
        state["sum"] += total[0]
    wanted = state["ranks"] * (state["ranks"] + 1) // 2 * (TERMS * (TERMS + 1) // 2)
    if comm.rank == 0:
        print("right" if state["sum"] == wanted else "wrong", f"{state['deaths']} ranks were lost", sep=": ")


main()
