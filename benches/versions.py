"""Two builds of Cohort beside each other, interleaved: what a change costs or brings.

Both run the programs of `make peers`, `make messages`, `make windows` and `make collectives` in turn, several
rounds, the order changing each time. Each line has the median of both and the ratio new over old: below 1 is
better, for rates above 1. A line is told for each distance between the CPUs (`distance.py`).
"""

import argparse
import pathlib
import statistics
import tempfile

from common import HERE, build, run, table
from distance import Distance

PROGRAMS = {
    "peers": [(2, "pair"), (16, "crowd")],
    "messages": [(2, mode) for mode in ("kinds", "parts", "matching", "threads 1", "threads 8")],
    "windows": [(2, "pair")],
    "collectives": [(2, "table"), (8, "table"), (16, "table"), (2, "small"), (8, "small")],
}


def measure(launcher, program, ranks, mode, samples, distance):
    """Adds the values of one run to the samples, by name of the line and distance between the CPUs."""
    output, place = distance.during(lambda: run([launcher, "-n", ranks, program, *mode.split()], None, 120))
    if place is None:
        return
    for line in (output or "").splitlines():
        name, _, value = line.rpartition(" ")
        try:
            samples.setdefault((name, place), []).append(float(value))
        except ValueError:
            continue


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True, help="folder of the new build")
    parser.add_argument("--old", type=pathlib.Path, required=True, help="folder of the old one")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=list(PROGRAMS), choices=list(PROGRAMS))
    options = parser.parse_args()
    launchers = {"old": options.old / "pip-exec", "new": options.built / "pip-exec"}
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        distance = Distance(folder)
        for source in options.only:
            program = build(options.built / "mpicc", HERE / f"{source}.c", f"{folder}/{source}", "-pthread", "-lm")
            for ranks, mode in PROGRAMS[source]:
                samples = {"old": {}, "new": {}}
                for number in range(options.rounds):
                    order = ["old", "new"] if number % 2 == 0 else ["new", "old"]
                    for which in order:
                        measure(launchers[which], program, ranks, mode, samples[which], distance)
                rows = []
                for name, place in sorted(samples["old"], key=lambda key: key[1]):
                    if (name, place) not in samples["new"]:
                        continue
                    old, new = (statistics.median(samples[which][name, place]) for which in ("old", "new"))
                    ratio = new / old if old else float("nan")
                    line = f"{distance.line(place):.3f}"
                    rows.append([name, line, f"{old:.3g}", f"{new:.3g}", f"{ratio:.2f}"])
                    if not name.startswith("rate"):
                        ratios.append(ratio)
                print()
                table([f"{source}, {ranks} ranks, {mode}", "raw line", "old", "new", "new / old"], rows)
    if ratios:
        quartiles = statistics.quantiles(ratios, n=4)
        print(f"\nMedian of all {len(ratios)} ratios that are times: {quartiles[1]:.3f}, "
              f"quartiles {quartiles[0]:.3f} and {quartiles[2]:.3f}.")


if __name__ == "__main__":
    main()
