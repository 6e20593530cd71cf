"""Kinds of messages beside other MPIs, interleaved in one run: persistent, partitioned and
vector messages, matching with long queues, and threads.

Every MPI runs `messages.c` in each of its good settings, as in `peers.py`; units are in the names. An
MPI that lacks a kind has no value there.
"""

import argparse
import pathlib
import tempfile

from common import HERE
from distance import Distance
from peers import compare_all, peers

MODES = ["kinds", "parts", "matching", "threads 1", "threads 2", "threads 8"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--modes", nargs="*", default=MODES, choices=MODES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        everyone, distance = peers(options.built, folder, HERE / "messages.c"), Distance(folder)
        for _ in range(options.rounds):
            for peer in everyone:
                peer.measure([(2, mode) for mode in options.modes], distance)
    print("\nIn brackets ours over theirs: below 1 is better, for rates above 1.")
    compare_all(everyone, distance)


if __name__ == "__main__":
    main()
