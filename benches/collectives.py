"""Collectives beside other MPIs, interleaved in one run.

Four tables. Blocking: each collective at four sizes (of a member's buffer; of a block for gather, scatter, allgather
and alltoall) with 2 ranks and with more ranks than CPUs, in microseconds; in brackets ours over theirs (below 1 is
better); and the largest bcast and allreduce over what the memory takes for the same moves, measured in the same run.
Small: the same of 8 bytes in all three forms, and short nonblocking ones, each with its end. Nonblocking, sizes as in
the first table: how much of an operation of two ranks hides behind computation as long as its pure latency while a
third rank is idle; rank 0 sleeps or works, rank 1 sleeps; and what nobody can hide, measured in the same run. Between
nodes, as in `network.py`: both again on two nodes of two ranks, and each nonblocking one with its end. There an
operation of one rank of each node is to be hidden, while both sleep and the other rank of each is idle.
"""

import argparse
import collections
import functools
import itertools
import pathlib
import statistics
import tempfile

from common import HERE, run, table
from distance import Distance
from hosts import Hosts
from network import on_nodes
from peers import cell, lines, peers

RANKS = (2, 8, 16)
OVERLAPS = ((3, "sleep", "1"), (2, "work", "1"), (2, "work", "2"))
OPERATIONS = ("barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall", "alltoallv",
              "reduce_scatter", "scan", "exscan")
AHEAD = 0.7
NODES_LIMIT = 15  # seconds for an operation between nodes in all sizes
OVERLAP_OF_NODES = ("sleep", "1", "nodes")


def sample(peer, ranks, mode, samples, given_up, distance=None, limit=40):
    """Runs a mode in each setting of a peer, for at most `limit` seconds; keeps what it prints, by distance between the
    CPUs (None without `distance`), MPI, name and setting."""
    for number, (options, env) in enumerate(peer.settings):
        if (number, ranks, *mode) in given_up:
            continue
        command = [*peer.launcher, *options, "-n", ranks, peer.program, *mode]
        start = functools.partial(run, command, {**peer.env, **env}, limit)
        output, place = distance.during(start) if distance else (start(), None)
        if output is None:
            given_up.add((number, ranks, *mode))
        for name, value in lines(output):
            values = samples[place][peer.name].setdefault((ranks, *mode, name), {})
            values.setdefault(number, []).append(value)


def best(samples, key):
    """Median of the best setting, or None."""
    medians = [statistics.median(values) for values in samples.get(key, {}).values()]
    return min(medians) if medians else None


def hidden(samples, overlap, name):
    """Percent of the pure latency that computation hides, in the best setting, and that latency."""
    ranks, *kind = overlap
    key = (ranks, "overlap", *kind)
    found = []
    for number, values in samples.get((*key, f"{name} pure"), {}).items():
        exposed = samples.get((*key, f"{name} exposed"), {}).get(number)
        if exposed:
            pure = statistics.median(values)
            found.append((100 * max(0.0, 1 - statistics.median(exposed) / pure), pure))
    return "{:.0f} % of {:.3g}".format(*max(found)) if found else "-"


def blocking_table(everyone, samples, mode, at=""):
    """Times beside each other; `at` names the distance between the CPUs."""
    ours, others = everyone[0], everyone[1:]
    names = [key[-1] for key in samples[ours.name] if key[:-1] == mode]
    rows = []
    if not names:
        return
    for name in names:
        key = (*mode, name)
        mine = best(samples[ours.name], key)
        theirs = [cell(best(samples[peer.name], key), mine) for peer in others]
        rows.append([name, f"{mine:.3g}", *theirs])
    print(f"\n{mode[0]} ranks{at}, microseconds; in brackets ours over theirs.\n")
    table(["", ours.name, *(peer.name for peer in others)], rows)
    rows = []
    for name in (name for name in names if name.endswith(" bound")):
        key = (*mode, name)
        bounds = [best(samples[peer.name], key) for peer in everyone]
        bound = min(it for it in bounds if it)
        key = (*mode, name.removesuffix(" bound"))
        times = [best(samples[peer.name], key) for peer in everyone]
        rows.append([key[-1], f"{bound:.3g}", *(f"{it / bound:.2f}" if it else "-" for it in times)])
    if rows:
        print(f"\n{mode[0]} ranks{at}, the memory's time, and each over that.\n")
        table(["", "memory", *(peer.name for peer in everyone)], rows)


def overlap_table(everyone, samples, overlaps, at=""):
    """How much of nonblocking collectives computation hides; `at` names the distance between the CPUs."""
    rows = []
    for overlap in overlaps:
        for operation in ("iallreduce", "ialltoall", "ibcast", "iallgather"):
            for size in ("64 KB", "1024 KB"):
                name = f"{operation} {size}"
                shares = [hidden(samples[peer.name], overlap, name) for peer in everyone]
                rows.append([f"{name}, {overlap[1]} x{overlap[2]}", *shares])
    print(f"\nShare of the pure latency that is hidden{at}, and that latency in microseconds.\n")
    table(["", *(peer.name for peer in everyone)], rows)
    for ranks, *kind in overlaps:
        key = (ranks, "overlap", *kind, "hand-over")
        found = [value for peer in everyone for values in samples[peer.name].get(key, {}).values() for value in values]
        if found:
            least = statistics.median(found)
            print(f"\nTo hand something to another CPU and to learn of its end takes {least:.3f} us, with the clocks.")


def sample_nodes(everyone, rounds, modes, at, limit):
    """What everyone prints in some modes on nodes, by name of the MPI, and who did not end in which one."""
    samples = {peer.name: {} for _, peer in everyone}
    given_up = {peer.name: set() for _, peer in everyone}
    for _ in range(rounds):
        for mode, (ranks, peer) in itertools.product(modes, everyone):
            mine = {None: {peer.name: {}}}
            sample(peer, ranks, mode, mine, given_up[peer.name], limit=limit)
            for (_, *key), values in mine[None][peer.name].items():
                kept = samples[peer.name].setdefault((at, *key), {})
                for number, found in values.items():
                    kept.setdefault(number, []).extend(found)
    return samples, given_up


def between_nodes(built, folder, asked):
    """The first table on nodes that have some ranks each; of two nodes of two ranks also the hidden shares."""
    nodes, each = asked.nodes, asked.per_node
    at = f"{nodes} x {each}"
    with Hosts(nodes, asked.link.split()) as hosts:
        everyone = on_nodes(built, folder, hosts, HERE / "collectives.c", each)
        # An MPI that does not get through one operation is measured with the others.
        modes = [("nodes", name) for name in ([asked.operation] if asked.operation else OPERATIONS)]
        samples, given_up = sample_nodes(everyone, asked.rounds, modes, at, NODES_LIMIT)
        nodes_table(everyone, samples, given_up, at)
        if (nodes, each) == (2, 2) and not asked.operation:
            in_turn = on_nodes(built, folder, hosts, HERE / "collectives.c", each, in_turn=True)
            samples, _ = sample_nodes(in_turn, asked.rounds, [("overlap", *OVERLAP_OF_NODES)], at, 120)
            overlap_table([peer for _, peer in in_turn], samples, [(at, *OVERLAP_OF_NODES)])


def nodes_table(everyone, samples, given_up, at):
    """Times beside each other, and the rows in which we are not far ahead."""
    (_, ours), others = everyone[0], everyone[1:]
    rows, behind = [], {}
    for key in {key: None for _, peer in everyone for key in samples[peer.name]}:
        mine, cells = best(samples[ours.name], key), []
        for ranks, peer in others:
            theirs = best(samples[peer.name], key)
            has_ended = theirs or any((number, ranks, *key[1:-1]) not in given_up[peer.name]
                                      for number in range(len(peer.settings)))
            cells.append(cell(theirs, mine) if has_ended else "no end")
        found = [value for _, peer in others if (value := best(samples[peer.name], key))]
        if mine and found and mine > AHEAD * min(found):
            behind[key[-1]] = mine / min(found)
        rows.append([key[-1], f"{mine:.3g}" if mine else "no end", *cells])
    print(f"\n{at} ranks (nodes x ranks of each), microseconds; in brackets ours over theirs.\n")
    table([at, ours.name, *(peer.name for _, peer in others)], rows)
    slow = ", ".join(f"{name} {ratio:.2f}" for name, ratio in sorted(behind.items(), key=lambda it: -it[1]))
    print(f"\nOver {AHEAD} of the best other in {len(behind)} of {len(rows)} rows{': ' if slow else ''}{slow}.")


def print_tables(everyone, samples, only, ranks, kind, at):
    """The tables of what was measured at one distance."""
    modes = [(count, kind) for count in ranks if only in (None, "table")]
    modes += [(count, ("small",)) for count in ranks if only in (None, "small")]
    for count, mode in modes:
        blocking_table(everyone, samples, (count, *mode), at)
    if only in (None, "overlap"):
        overlap_table(everyone, samples, OVERLAPS, at)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=["table", "small", "overlap", "nodes"])
    parser.add_argument("--ranks", type=int, nargs="+", default=RANKS, help="of the first table")
    parser.add_argument("--operation", help="the only row of the first table: bcast, ...")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--per-node", type=int, default=2, help="ranks of each node")
    parser.add_argument("--link", default="", help="words of tc for what each node sends: netem delay 20us rate 10gbit")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        everyone, distance = peers(options.built, folder, HERE / "collectives.c"), Distance(folder)
        samples = collections.defaultdict(lambda: {peer.name: {} for peer in everyone})
        given_up = {peer.name: set() for peer in everyone}
        kind = ("table", options.operation) if options.operation else ("table",)
        modes = [(ranks, kind) for ranks in options.ranks if options.only in (None, "table")]
        if options.only in (None, "small"):
            modes += [(ranks, ("small",)) for ranks in options.ranks]
        if options.only in (None, "overlap"):
            modes += [(ranks, ("overlap", *kind)) for ranks, *kind in OVERLAPS]
        for _ in range(options.rounds):
            for ranks, mode in modes:
                for peer in everyone:
                    sample(peer, ranks, mode, samples, given_up[peer.name], distance)
        for place in distance.comparable(lambda place: [len(samples[place][peer.name]) for peer in everyone]):
            at = f" while a raw cache line takes {distance.line(place):.3f} us"
            print_tables(everyone, samples[place], options.only, options.ranks, kind, at)
        if options.only in (None, "nodes"):
            between_nodes(options.built, folder, options)


if __name__ == "__main__":
    main()
