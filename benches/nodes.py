"""Progress between two nodes under each policy, beside MPICH: two launchers on this machine, in network namespaces
of their own if the system allows it, over TCP.

* overlap: Daps, figure 4, two-sided, across nodes: two 2 MB messages while the receiver sleeps 200 ms and its
  neighbour idles; the sender is on the other node. With all communication hidden it takes 200 ms.
* stencil: five points, a stripe on each node, and an idle rank beside the first: computing and waiting for halos.
* wake: how much later a rank that sleeps in MPI answers than one that polls.
* steals: what a steal that finds nothing costs the thief, which spins; steals and messages per second of a
  thief that takes 4-byte messages off the network for a rank that computes.

Ratios in brackets: overlap over the sleep, halo over computing. Cells are medians.
"""

import argparse
import pathlib
import statistics
import tempfile

from common import HERE, build, cache, run, table
from hosts import Hosts

SLEEP_MS = 200
POLICIES = {
    "steal, mirror": {"COHORT_PROGRESS": "steal"},
    "steal, defer": {"COHORT_PROGRESS": "steal", "COHORT_NET_NOTIFY": "defer"},
    "thread": {"COHORT_PROGRESS": "thread"},
    "none": {"COHORT_PROGRESS": "none"},
}


def values(output):
    """The `name value` lines of a program, by name."""
    found = {}
    for line in (output or "").splitlines():
        words = line.split()
        if len(words) == 2 and "_" in words[0]:
            found.setdefault(words[0], []).append(float(words[1]))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    mpich = cache() / "mpich-venv/bin"
    with tempfile.TemporaryDirectory() as folder, Hosts() as hosts:
        overlap_source = HERE.parent / "tests/programs/c/overlap.c"
        programs = {
            mpi: (build(compiler, overlap_source, f"{folder}/{mpi}-overlap"),
                  build(compiler, HERE / "nodes.c", f"{folder}/{mpi}-nodes"))
            for mpi, compiler in (("ours", options.built / "mpicc"), ("mpich", mpich / "mpicc"))
        }
        # Dealt out in turn: rank 0 and the idle rank 2 share a node, rank 1 is on the other.
        hydra = hosts.hydra(mpich / "mpiexec.hydra")
        ours = [*hydra, "-n", 2, options.built / "pip-exec", "--map-by", "node", "-n"]
        launches = {name: ([*ours, "2,1"], [*ours, "1"], "ours", env) for name, env in POLICIES.items()}
        peer = [*hydra, "-n"]
        tcp = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"}
        launches["MPICH"] = ([*peer, 3], [*peer, 2], "mpich", tcp)
        samples = {name: {} for name in launches}
        for _ in range(options.repeat):
            for name, (three, two, mpi, env) in launches.items():
                overlap, nodes = programs[mpi]
                runs = {
                    "contiguous": [*three, overlap, "c", "c"],
                    "vector": [*three, overlap, "v", "v"],
                    "stencil": [*three, nodes, "stencil"],
                    "wake": [*two, nodes, "wake"],
                }
                if name.startswith("steal"):
                    runs["steals"] = [*three, nodes, "steals"]
                for kind, command in runs.items():
                    settings = {**env, "COHORT_WAIT": "spin"} if kind == "steals" else env
                    for key, found in values(run(command, settings, 60)).items():
                        samples[name].setdefault((kind, key), []).extend(found)
    rows, steals = [], []
    for name, mine in samples.items():
        def median(kind, key):
            return statistics.median(mine.get((kind, key)) or [float("nan")])

        totals = [median(kind, "total_ms") for kind in ("contiguous", "vector")]
        compute, halo = (median("stencil", key) for key in ("compute_ms", "halo_ms"))
        rows.append([
            name,
            *(f"{total:.1f} ms ({total / SLEEP_MS:.3f}x)" for total in totals),
            f"{compute:.0f} + {halo:.1f} ms ({halo / compute:.3f}x)",
            f"{median('wake', 'wake_us'):.0f} us",
        ])
        if ("steals", "failed_us") in mine:
            steals.append([name, *(f"{median('steals', key):.3g}"
                                   for key in ("failed_us", "stolen_per_s", "messages_per_s"))])
    table(["between nodes", "overlap, contiguous", "overlap, vectors", "stencil", "wake-up"], rows)
    print()
    table(["a thief", "failed steal (us)", "steals/s", "messages/s"], steals)


if __name__ == "__main__":
    main()
