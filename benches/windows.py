"""One-sided communication beside other MPIs, and while targets compute; everything interleaved in one run.

Three tables: operations and locks of a pair of ranks; two operations of 16 MB while their target
sleeps 200 ms (Daps, figure 4 a to c), within a node and between two nodes over TCP's loopback;
two-stage block sparse matrix multiplication under each policy (Daps, section VI-B1). Ratios are
ours over the peer's: below 1 is better, for rates above 1.
"""

import argparse
import pathlib
import statistics
import tempfile

from common import HERE, build, cache, run, table
from distance import Distance
from peers import compare_all, lines, peers

POLICIES = ("steal", "none", "thread", "ghost", "signal", "helper")


def gather(launches, rounds):
    """Runs every command of a dictionary in turn; medians by line of output and command."""
    found = {}
    for _ in range(rounds):
        for name, (command, env) in launches.items():
            for what, value in lines(run(command, env, 120)):
                found.setdefault(what, {}).setdefault(name, []).append(value)
    return {what: {name: statistics.median(values) for name, values in cells.items()} for what, cells in found.items()}


def show(title, found, columns, cell):
    rows = [[what, *(cell(cells, name) for name in columns)] for what, cells in found.items()]
    table([title, *columns], rows)


def hidden(built, program, rounds):
    """One more rank idles on each node."""
    between = [cache() / "mpich-venv/bin/mpiexec.hydra", "-n", 2, built / "pip-exec", "-n", 2]
    launches = {}
    for policy in ("steal", "none"):
        env = {"COHORT_PROGRESS": policy}
        launches[f"{policy}, one node"] = ([built / "pip-exec", "-n", 3, program, "hidden"], env)
        launches[f"{policy}, two nodes"] = ([*between, program, "hidden"], env)
    found = gather(launches, rounds)
    show("target sleeps 200 ms", found, launches, lambda cells, name: f"{cells[name]:.1f}" if name in cells else "-")


def multiplication(built, folder, rounds, ranks):
    program = build(built / "mpicc", HERE / "papers/bspmm.c", f"{folder}/bspmm")
    for kind in ("real", "sleep"):
        command = [built / "pip-exec", "-n", ranks, program, kind]
        launches = {policy: (command, {"COHORT_PROGRESS": policy}) for policy in POLICIES}
        found = gather(launches, rounds)

        def cell(cells, name):
            if name not in cells or "none" not in cells:
                return "-"
            return f"{cells[name]:.1f} ({cells[name] / cells['none']:.2f}x)"

        print(f"\nTwo stages, multiplication {kind}; milliseconds, in brackets over those without progress.\n")
        show(f"{ranks} ranks", found, POLICIES, cell)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        everyone, distance = peers(options.built, folder, HERE / "windows.c"), Distance(folder)
        for _ in range(options.rounds):
            for peer in everyone:
                peer.measure([(2, "pair")], distance)
        print("\nMicroseconds (rates: GB/s); in brackets ours over theirs.")
        compare_all(everyone, distance)
        print("\nMilliseconds, and the part of them that is hidden behind the target's sleep in percent.\n")
        hidden(options.built, everyone[0].program, options.rounds)
        multiplication(options.built, folder, options.rounds, 2)


if __name__ == "__main__":
    main()
