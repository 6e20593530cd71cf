"""Progress between two nodes under each policy, beside MPICH: two launchers on this machine, over TCP.

* overlap: Daps, figure 4, two-sided, across nodes: two 2 MB messages while the receiver sleeps 200 ms and its
  neighbour idles; the sender is on the other node. With all communication hidden it takes 200 ms.
* stencil: five points, a stripe on each node, and an idle rank beside the first: computing and waiting for halos.
* wake: how much later a rank that sleeps in MPI answers than one that polls.

Ratios in brackets: overlap over the sleep, halo over computing. Cells are medians.
"""

import argparse
import pathlib
import statistics
import tempfile

from common import HERE, build, cache, run, table

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
    with tempfile.TemporaryDirectory() as folder:
        overlap_source = HERE.parent / "tests/programs/c/overlap.c"
        programs = {
            mpi: (build(compiler, overlap_source, f"{folder}/{mpi}-overlap"),
                  build(compiler, HERE / "nodes.c", f"{folder}/{mpi}-nodes"))
            for mpi, compiler in (("ours", options.built / "mpicc"), ("mpich", mpich / "mpicc"))
        }
        # Dealt out in turn: rank 0 and the idle rank 2 share a node, rank 1 is on the other.
        ours = [mpich / "mpiexec.hydra", "-n", 2, options.built / "pip-exec", "--map-by", "node", "-n"]
        launches = {name: ([*ours, "2,1"], [*ours, "1"], "ours", env) for name, env in POLICIES.items()}
        peer = [mpich / "mpiexec", "-n"]
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
                for kind, command in runs.items():
                    for key, found in values(run(command, env, 60)).items():
                        samples[name].setdefault((kind, key), []).extend(found)
    rows = []
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
    table(["between nodes", "overlap, contiguous", "overlap, vectors", "stencil", "wake-up"], rows)


if __name__ == "__main__":
    main()
