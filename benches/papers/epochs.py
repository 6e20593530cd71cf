"""The experiments of "Nonblocking Epochs in MPI One-Sided Communication" side by side: blocking epochs, nonblocking ones, and those that
may overtake each other; blocking epochs of MPICH beside them. A value is the median over several rounds, in microseconds or,
for the transactions, per second.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from common import build, cache, run, table  # noqa: E402

MODES = ("blocking", "nonblocking", "reorder")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=3)
    options = parser.parse_args()
    mpich = cache() / "mpich-venv/bin"
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        ours = build(options.built / "mpicc", HERE / "epochs.c", f"{folder}/ours")
        runs = {mode: [options.built / "pip-exec", "-n", options.ranks, ours, mode] for mode in MODES}
        if (mpich / "mpicc").exists():
            theirs = build(mpich / "mpicc", HERE / "epochs.c", f"{folder}/mpich", "-DNO_NONBLOCKING_EPOCHS")
            runs["MPICH, blocking"] = [mpich / "mpiexec", "-n", options.ranks, theirs, "blocking"]
        for _ in range(options.rounds):
            for name, command in runs.items():
                for line in (run(command, {}, 120) or "").splitlines():
                    _, experiment, value = line.split()
                    found.setdefault(experiment, {}).setdefault(name, []).append(float(value))
    rows = [
        [experiment, *(f"{statistics.median(values[name]):.0f}" if name in values else "-" for name in runs)]
        for experiment, values in found.items()
    ]
    table(["experiment", *runs], rows)


if __name__ == "__main__":
    main()
