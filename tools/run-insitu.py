#!/usr/bin/env python3
"""Runs examples/insitu.c without and with stealing, and with MPICH if it is there, in turn; totals first.

    tools/run-insitu.py PIP-EXEC INSITU [--mpich PREFIX] [--rounds N] [--steps N]

Status 0 if all results were right, whatever the times. There is a verdict on the times only if the machine
had two CPUs for the two ranks: the kernel counts how long a process wanted to run and could not.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys

# Above this share of a run without a CPU, or when half of the runs without stealing are farther than this from their
# median, times say more about the machine's other work than about MPI.
NO_CPU_MOST, SPREAD_MOST = 0.05, 0.05
TOTAL = re.compile(r"total ([\d.]+) ms, (\d+) steps of (\d+) KiB, 0 of them")
RANK = re.compile(r"rank \d worked ([\d.]+) ms, was in MPI [\d.]+ ms, had no CPU for ([\d.]+) ms")

PLAIN_WORDS = """
In plain words: rank 0 simulates and sends each field, rank 1 analyses it. Both have the same work, but every
other step is heavy. Rank 1 has posted its receive and computes, so without stealing rank 0 waits in MPI_Send
until rank 1 is back in MPI, and each step takes as long as the slower of the two. With stealing rank 0, which
waits, delivers the message itself and goes on. All runs had the right results."""


class Candidate:
    """One way to run the program, and what its runs have said."""

    def __init__(self, name, launcher, env, required=True):
        self.name, self.launcher, self.required = name, launcher, required
        self.env = {**os.environ, **env}
        self.totals, self.works, self.no_cpu, self.failure = [], [], [], None

    def run(self, program, steps):
        if self.failure:
            return
        command = [str(word) for word in (*self.launcher, "-n", 2, program, steps)]
        try:
            ended = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=120)
            output, error, status = ended.stdout, ended.stderr, ended.returncode
        except (OSError, subprocess.TimeoutExpired) as problem:
            output, error, status = "", str(problem), 1
        total, ranks = TOTAL.search(output), RANK.findall(output)
        if status != 0 or not total or len(ranks) != 2:
            self.failure = f"{' '.join(command)}: status {status}\n{output}{error}"
            return
        milliseconds = float(total[1])
        self.totals.append(milliseconds)
        self.works.append(max(float(work) for work, _ in ranks))
        self.no_cpu.append(max(float(lost) for _, lost in ranks) / max(milliseconds, 0.1))

    def total(self):
        return statistics.median(self.totals)


def candidates(pip_exec, mpich):
    found = [Candidate(f"Cohort, COHORT_PROGRESS={policy}", [pip_exec], {"COHORT_PROGRESS": policy})
             for policy in ("none", "steal")]
    if mpich and (mpich / "bin/mpiexec").exists():
        # The same program: MPICH has a library of the MPI-5 ABI too.
        found.append(Candidate("MPICH", [mpich / "bin/mpiexec"], {"LD_LIBRARY_PATH": f"{mpich}/lib"}, False))
    return found


def busy(without, everyone):
    """Why the times mean nothing, or None."""
    cpus = len(os.sched_getaffinity(0))
    if cpus < 2:
        return "two ranks need two CPUs, and there is one"
    lost = max(statistics.median(one.no_cpu) for one in everyone)
    if lost > NO_CPU_MOST:
        return f"machine busy: a rank had no CPU for {100 * lost:.0f} % of the time"
    spread = statistics.median(abs(total - without.total()) for total in without.totals) / without.total()
    if spread > SPREAD_MOST:
        return f"machine busy: half of the runs without stealing differ by more than {100 * spread:.0f} %"
    return None


def verdict(without, stealing, others):
    ratio = without.total() / stealing.total()
    text = f"With stealing the whole is {ratio:.2f} times as fast as without it"
    for other in others:
        text += f", and {other.total() / stealing.total():.2f} times as fast as with {other.name}"
    return text + "."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pip_exec", type=pathlib.Path)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--mpich", type=pathlib.Path, help="where MPICH is installed")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()

    everyone = candidates(options.pip_exec, options.mpich)
    for _ in range(options.rounds):
        for one in everyone:
            one.run(options.program, options.steps)
    for one in [one for one in everyone if one.failure]:
        if one.required:
            sys.exit(one.failure)
        print(f"({one.name} did not run: {one.failure.splitlines()[0]})")
        everyone.remove(one)
    without, stealing, *others = everyone

    print("== A producer and a consumer with uneven work: 2 ranks, examples/insitu.c ==")
    print("Milliseconds in all: the median, and each of the rounds, which were run in turn.")
    for one in (stealing, without, *others):
        rounds = " ".join(f"{total:.0f}" for total in one.totals)
        print(f"  {one.name:<30} {one.total():7.0f}   ({rounds})")
    work = min(work for one in everyone for work in one.works)
    print(f"  {'the work of one rank, no MPI':<30} {work:7.0f}")
    reason = busy(without, everyone)
    print(f"No verdict, {reason}." if reason else verdict(without, stealing, others))
    print(PLAIN_WORDS)


if __name__ == "__main__":
    main()
