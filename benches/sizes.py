"""Messages, one-sided operations and collectives of all sizes beside other MPIs, interleaved in one run.

Every MPI runs `sizes.c` in each of its good settings, as in `peers.py`; times are microseconds, of one message where
many follow each other, and of a call otherwise. A line behind each table names the rows in which another one is ahead.
"""

import argparse
import pathlib
import tempfile

from common import HERE
from distance import Distance
from peers import compare_all, peers

MODES = ["messages", "windows", "collectives"]
EQUAL = 1.03  # what differs by less differs from run to run


def name_behind(everyone, place):
    ours, others = everyone[0], everyone[1:]
    behind = {}
    for name in ours.samples[place]:
        theirs = [value for peer in others if (value := peer.best(name, place))]
        mine = ours.best(name, place)
        if theirs and mine > EQUAL * min(theirs):
            behind[name] = mine / min(theirs)
    named = ", ".join(f"{name} {ratio:.2f}" for name, ratio in sorted(behind.items(), key=lambda it: -it[1]))
    print(f"\nBehind the best other in {len(behind)} of {len(ours.samples[place])} rows{': ' if named else ''}{named}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--modes", nargs="*", default=MODES, choices=MODES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        everyone, distance = peers(options.built, folder, HERE / "sizes.c"), Distance(folder)
        for _ in range(options.rounds):
            for peer in everyone:
                peer.measure([(options.ranks, mode) for mode in options.modes], distance)
    print("\nMicroseconds; in brackets ours over theirs.")
    compare_all(everyone, distance, lambda place: name_behind(everyone, place))


if __name__ == "__main__":
    main()
