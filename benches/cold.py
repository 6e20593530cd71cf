"""What is called rarely, in jobs of many ranks: microseconds of each call and how they grow with the number of ranks.

All ranks call at once, so a job's work grows at least with the number of its ranks, and 1 is the best exponent that a
machine with few CPUs can show. A call whose every rank reads a list of all ranks has 2, with a small factor. The
second table has a rank's own objects: microseconds to make and free one, of so many that live at once.
"""

import argparse
import math
import pathlib
import statistics
import tempfile

from common import HERE, build, run, table


def lines(output):
    for line in (output or "").splitlines():
        name, _, value = line.rpartition(" ")
        yield name, float(value)


def exponent(points):
    """The slope of a straight line through the logarithms."""
    if len(points) < 2:
        return math.nan
    xs, ys = zip(*[(math.log(x), math.log(y)) for x, y in points])
    x, y = statistics.mean(xs), statistics.mean(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


def together(built, program, counts, rounds, only):
    found = {}
    for _ in range(rounds):
        for count in counts:
            for name, value in lines(run([built / "pip-exec", "-n", count, program, *only], seconds=60)):
                found.setdefault(name, {}).setdefault(count, []).append(value)
    rows = []
    for name, cells in found.items():
        times = {count: min(values) for count, values in cells.items()}
        shown = [f"{times[count]:.0f}" if count in times else "-" for count in counts]
        grown = exponent([(count, time) for count, time in times.items() if count >= max(counts) / 20])
        rows.append([name, *shown, f"{grown:.1f}"])
    table(["all ranks", *counts, "exponent"], rows)


def alone(built, program):
    found = {}
    for name, value in lines(run([built / "pip-exec", "-n", 1, program, "local"], seconds=60)):
        what, _, count = name.rpartition(" ")
        found.setdefault(what, {})[int(count)] = value
    counts = sorted({count for cells in found.values() for count in cells})
    rows = [[what, *(f"{cells[count]:.3f}" for count in counts)] for what, cells in found.items()]
    table(["one rank", *counts], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--ranks", type=int, nargs="+", default=[16, 64, 250, 500, 1000])
    parser.add_argument("--only", help="one of the calls")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = build(options.built / "mpicc", HERE / "cold.c", f"{folder}/cold", "-w")
        together(options.built, program, options.ranks, options.rounds, [options.only] if options.only else [])
        if not options.only:
            print()
            alone(options.built, program)


if __name__ == "__main__":
    main()
