"""The overlap experiment: two 2 MB messages while the receiver sleeps 200 ms.

Daps (figure 4) with two-sided messages: total time under each progress policy, for strided and
contiguous layouts, with and without a further rank that idles in a barrier. Ideal is 200 ms.
Runs are interleaved; a cell is the median over all repetitions.
"""

import argparse
import pathlib
import statistics
import tempfile

from common import HERE, build, cache, run, table

SLEEP_MS = 200
POLICIES = ("steal", "none", "thread")
VARIANTS = (
    # name, ranks, layout of receiver and of sender
    ("vector to vector, one idle rank", 3, "v", "v"),
    ("contiguous, one idle rank", 3, "c", "c"),
    ("vector sender, one idle rank", 3, "c", "v"),
    ("vector receiver, one idle rank", 3, "v", "c"),
    ("vector to vector, no idle rank", 2, "v", "v"),
)


def totals_ms(output):
    lines = (output or "").splitlines()
    return [float(line.split()[1]) for line in lines if line.startswith("total_ms")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    source = HERE.parent / "tests/programs/c/overlap.c"
    mpich = cache() / "mpich-venv/bin"
    with tempfile.TemporaryDirectory() as folder:
        ours = build(options.built / "mpicc", source, f"{folder}/ours")
        peer = build(mpich / "mpicc", source, f"{folder}/mpich")
        launches = {
            policy: ([options.built / "pip-exec"], ours, {"COHORT_PROGRESS": policy})
            for policy in POLICIES
        }
        launches["MPICH"] = ([mpich / "mpiexec"], peer, {})
        samples = {}
        for _ in range(options.repeat):
            for variant in VARIANTS:
                for name, (launcher, program, env) in launches.items():
                    command = [*launcher, "-n", variant[1], program, *variant[2:]]
                    samples.setdefault((variant, name), []).extend(totals_ms(run(command, env, 60)))
    rows = []
    for variant in VARIANTS:
        cells = [variant[0]]
        for name in launches:
            values = samples[variant, name]
            median = statistics.median(values) if values else float("nan")
            cells.append(f"{median:.1f} ms ({median / SLEEP_MS:.2f}x)")
        rows.append(cells)
    print(f"\nTotal time; the receiver sleeps {SLEEP_MS} ms, so 1.00x means all communication hidden.\n")
    table(["2 x 2 MB", *launches], rows)


if __name__ == "__main__":
    main()
