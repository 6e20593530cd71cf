"""The experiments of "Nonblocking Epochs in MPI One-Sided Communication" side by side: blocking
epochs, nonblocking ones, and those that may overtake each other; blocking epochs of MPICH beside
them. A value is the median over several rounds, in microseconds, for the transactions per second,
for the decomposition in milliseconds; in brackets how many times better it is than with blocking
epochs.
"""

import argparse
import contextlib
import pathlib
import statistics
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from common import build, cache, run, table  # noqa: E402
from hosts import Hosts  # noqa: E402

MODES = ("blocking", "nonblocking", "reorder")


def cell(experiment, value, blocking):
    """A median, and how much better it is than with blocking epochs."""
    ratio = value / blocking if "per-second" in experiment else blocking / value
    return f"{value:.0f} ({ratio:.2f}x)"


def row(experiment, values, runs):
    medians = {name: statistics.median(samples) for name, samples in values.items()}
    blocking = medians.get("blocking")
    shown = lambda name: cell(experiment, medians[name], blocking) if name in medians and blocking else "-"
    return [experiment, *map(shown, runs)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", default="3", help="with --nodes those of each of two nodes: 2,1")
    parser.add_argument("--nodes", action="store_true", help="between two nodes (network namespaces, over TCP)")
    options = parser.parse_args()
    mpich = cache() / "mpich-venv/bin"
    found, given_up = {}, set()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        compiler, start = options.built / "mpicc", [options.built / "pip-exec", "-n", options.ranks]
        theirs_start, theirs_env = [mpich / "mpiexec", "-n", options.ranks], {}
        if options.nodes:
            hosts, count = stack.enter_context(Hosts()), sum(map(int, options.ranks.split(",")))
            hydra = hosts.hydra(mpich / "mpiexec.hydra")
            start = [*hydra, "-n", 2, options.built / "pip-exec", "--map-by", "node", *start[1:]]
            theirs_start = [*hydra, "-n", count]
            theirs_env = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"}
        epochs = build(compiler, HERE / "epochs.c", f"{folder}/epochs")
        lu = build(compiler, HERE / "lu.c", f"{folder}/lu")
        runs = {mode: [[*start, epochs, mode], [*start, lu, mode]] for mode in MODES[:2]}
        runs["reorder"] = [[*start, epochs, "reorder"]]
        if (mpich / "mpicc").exists():
            theirs = build(mpich / "mpicc", HERE / "epochs.c", f"{folder}/mpich", "-DNO_NONBLOCKING_EPOCHS")
            runs["MPICH, blocking"] = [[*theirs_start, theirs, "blocking"]]
        for _ in range(options.rounds):
            for name, commands in runs.items():
                env = theirs_env if name.startswith("MPICH") else {}
                outputs = [] if name in given_up else [run(command, env, 60) for command in commands]
                if None in outputs:
                    given_up.add(name)
                for line in "".join(filter(None, outputs)).splitlines():
                    _, experiment, value = line.split()
                    found.setdefault(experiment, {}).setdefault(name, []).append(float(value))
    rows = [row(experiment, values, runs) for experiment, values in found.items()]
    others = [cells for cells in rows if cells[0].endswith(("per-second", "ms"))]
    table(["experiment, us", *runs], [cells for cells in rows if cells not in others])
    print()
    table(["experiment, as named", *runs], others)


if __name__ == "__main__":
    main()
