"""mpi4py's own test suite where ranks outnumber CPUs, as a CI runner has it, beside other MPIs.

Each group of modules takes turns among the MPIs, which run it as they do so out of the box; Open MPI is told that ranks
may outnumber CPUs, which it refuses otherwise. A group that does not end within the limit, or fails, counts with the
limit: `> 120`. Ratios are ours over the best of the others.
"""

import argparse
import os
import pathlib
import signal
import statistics
import subprocess
import time

import app_list
import candidates
from common import cache, table

# One group from each kind of what MPI does; those with many operations on all pairs of ranks show waiting best.
GROUPS = {
    "messages": ("test_p2p_buf", "test_p2p_buf_matched", "test_p2p_obj"),
    "collectives": ("test_cco_buf", "test_cco_vec", "test_cco_obj"),
    "nonblocking collectives": ("test_cco_nb_buf", "test_cco_nb_vec"),
    "topologies": ("test_cco_ngh_buf", "test_cco_ngh_obj"),
    "windows": ("test_rma", "test_win"),
    "communicators": ("test_comm", "test_comm_inter", "test_group"),
}


def seconds_of(candidate, ranks, modules, limit):
    """Wall-clock seconds of a group, or None."""
    python = cache() / app_list.PYTHON_OF.get(candidate.name, "mpi4py-venv") / "bin/python"
    include = f"^({'|'.join(modules)})\\.py$"
    program = [python, "-B", cache() / "mpi4py-src/test/main.py", "--no-builddir", "-q", "-i", include]
    setting = candidate.usual
    command = [str(word) for word in candidate.command(ranks, setting, program)]
    begun = time.monotonic()
    process = subprocess.Popen(command, env=candidate.environment(setting), start_new_session=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        status = process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None
    return time.monotonic() - begun if status == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=5)
    parser.add_argument("--limit", type=int, default=120, help="seconds for a group")
    options = parser.parse_args()
    everyone = [each for each in candidates.everyone(options.built) if each.name == "steal" or not each.is_ours]
    rows = []
    for name, modules in GROUPS.items():
        found = {candidate.name: [] for candidate in everyone}
        for _ in range(options.rounds):
            for candidate in everyone:
                if None not in found[candidate.name]:
                    found[candidate.name].append(seconds_of(candidate, options.ranks, modules, options.limit))
        medians = {who: None if None in times else statistics.median(times) for who, times in found.items()}
        others = [time for who, time in medians.items() if who != "steal" and time is not None]
        best = min(others, default=options.limit)
        cells = [f"> {options.limit}" if time is None else f"{time:.1f}" for time in medians.values()]
        ratio = "-" if medians["steal"] is None else f"{'' if others else '< '}{medians['steal'] / best:.2f}"
        rows.append([name, *cells, ratio])
    print(f"\nSeconds of a job of {options.ranks} ranks on {candidates.CPUS} CPUs, with start and end.\n")
    table(["mpi4py's tests of", "Cohort", "MPICH", "Open MPI", "Intel MPI", "ours / best"], rows)


if __name__ == "__main__":
    main()
