"""What `--on-failure continue` costs, beside jobs that end with the first rank that fails, with and without it in turn.

Two pinned ranks for messages, four for collectives; the program is `peers.c`. Each value is the median of all rounds.
Ratios are of `continue` over the same policy without it (`COHORT_PROGRESS=none`), and over the default policy (below 1
is better; for the rate above 1).
"""

import argparse
import pathlib
import tempfile

from common import HERE, build, cache, table
from peers import Peer

MODES = [(2, "pair 4"), (4, "crowd")]
WAYS = [("default", []), ("none", ["-genv", "COHORT_PROGRESS", "none"]), ("continue", ["--on-failure", "continue"])]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    mpich = cache() / "mpich-venv"
    link = [f"-I{mpich}/include", f"-L{mpich}/lib", "-lmpi", "-pthread", "-Wl,--allow-shlib-undefined"]
    with tempfile.TemporaryDirectory() as folder:
        program = build("cc", HERE / "peers.c", f"{folder}/peers", *link)
        peers = [Peer(name, program, [options.built / "pip-exec"], [(words, {})]) for name, words in WAYS]
        for _ in range(options.rounds):
            for peer in peers:
                peer.measure(MODES)
    rows = []
    for name in peers[0].samples[None]:
        default, none, survives = (peer.best(name) for peer in peers)
        if None in (default, none, survives):
            continue
        values = [f"{value:.3g}" for value in (default, none, survives)]
        rows.append([name, *values, f"{survives / none:.2f}x", f"{survives / default:.2f}x"])
    print("\nMicroseconds (the rate: messages per microsecond).\n")
    table(["", *(name for name, _ in WAYS), "to none", "to default"], rows)


if __name__ == "__main__":
    main()
