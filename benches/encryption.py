"""What `COHORT_NET_ENCRYPT=1` costs messages between nodes, with and without it in turn.

Two nodes of one rank on this machine, in network namespaces of their own if the system allows it, over TCP. The
program is `peers.c`. The best round of each counts, since other work on the machine only adds time; the ratio is
encrypted over plain (below 1 is better; for the rate above 1).
"""

import argparse
import pathlib
import tempfile

from common import HERE, build, cache, table
from hosts import Hosts
from peers import Peer

MODE = "pair 20"


def best(peer, name):
    values = peer.samples[None][name][0]
    return max(values) if name.startswith("rate") else min(values)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    mpich = cache() / "mpich-venv"
    link = [f"-I{mpich}/include", f"-L{mpich}/lib", "-lmpi", "-pthread", "-Wl,--allow-shlib-undefined"]
    with tempfile.TemporaryDirectory() as folder, Hosts() as hosts:
        program = build("cc", HERE / "peers.c", f"{folder}/peers", *link)
        launcher = [*hosts.hydra(mpich / "bin/mpiexec.hydra"), "-n", 2, options.built / "pip-exec"]
        plain, encrypted = (Peer(name, program, launcher, [([], {"COHORT_NET_ENCRYPT": value})])
                            for name, value in (("plain", "off"), ("encrypted", "on")))
        for _ in range(options.rounds):
            for peer in (plain, encrypted):
                peer.measure([(1, MODE)])
    rows = []
    for name in plain.samples[None]:
        both = best(plain, name), best(encrypted, name)
        rows.append([name, *(f"{value:.3g}" for value in both), f"{both[1] / both[0]:.2f}x"])
    print("\nMicroseconds (the rate: millions per second).\n")
    table(["over TCP", "plain", "encrypted", "ratio"], rows)


if __name__ == "__main__":
    main()
