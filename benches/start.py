"""Jobs from the call of their launcher to its end, beside other MPIs, interleaved in one run.

The program joins in one barrier. On one node, then on nodes of which each has a network namespace, whose launchers are
started without ssh. The table has the best setting's medians in milliseconds; in brackets ours over theirs: below 1 is
better.
"""

import argparse
import pathlib
import tempfile
import time

from common import HERE, run, table
from hosts import Hosts
from network import on_nodes
from peers import cell, peers

WITHIN = (1, 2, 8, 32)
BETWEEN = ((2, 1), (4, 1), (4, 2))


def measure(peer, ranks, name):
    """Times one job in each setting of a peer that has not failed in it."""
    for number, (options, env) in enumerate(peer.settings):
        if (number, name) in peer.given_up:
            continue
        begun = time.perf_counter()
        if run([*peer.launcher, *options, "-n", ranks, peer.program], {**peer.env, **env}, 30) is None:
            peer.given_up.add((number, name))
            continue
        taken = 1e3 * (time.perf_counter() - begun)
        peer.samples[None].setdefault(name, {}).setdefault(number, []).append(taken)


def rounds_of(everyone, name, rounds):
    """The row of a kind of job; `everyone` are pairs of the ranks that a launcher is asked for and an MPI."""
    for _ in range(rounds):
        for ranks, peer in everyone:
            measure(peer, ranks, name)
    (_, ours), *others = everyone
    mine = ours.best(name)
    return [name, "-" if mine is None else f"{mine:.3g}", *(cell(peer.best(name), mine) for _, peer in others)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rows, rounds = [], 3 * options.rounds
    with tempfile.TemporaryDirectory() as folder:
        everyone = peers(options.built, folder, HERE / "start.c")
        for ranks in WITHIN:
            rows.append(rounds_of([(ranks, peer) for peer in everyone], f"1 x {ranks}", rounds))
        for nodes, each in BETWEEN:
            with Hosts(nodes) as hosts:
                everyone = on_nodes(options.built, folder, hosts, HERE / "start.c", each)
                rows.append(rounds_of(everyone, f"{nodes} x {each}", rounds))
    print("\nMilliseconds; in brackets ours over theirs.\n")
    table(["nodes x ranks of each", "Cohort", *(peer.name for _, peer in everyone[1:])], rows)


if __name__ == "__main__":
    main()
