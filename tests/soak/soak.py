"""Runs random MPI programs whose every byte is checked (soak.c), for a while.

Each program has a seed, ranks, nodes, a policy and settings that follow from the seed of the whole, so the same command
runs the same programs. One that fails, or does not end, is shrunk: to one round, then to few messages or operations of
it. The command that shows it is printed. The status is 0 if all bytes were right.
"""

import argparse
import os
import pathlib
import queue
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benches"))

from common import cache  # noqa: E402
from cut import Cut  # noqa: E402
from hosts import Hosts  # noqa: E402

DONE = re.compile(r"messages (\d+), bytes (\d+), none wrong")
WRONG = re.compile(r"soak: WRONG: .*? round (\d+) ")
# What is drawn for a program, beside its policy. The first value of each is the default.
SETTINGS = {
    "COHORT_EAGER_MAX": ("16K", "16K", "0", "1K", "256K"),
    "COHORT_NET_EAGER_MAX": ("256K", "64K", "1K", "0"),
    "COHORT_NET_RAILS": ("1", "1", "3"),
    "COHORT_NET_NOTIFY": ("mirror", "mirror", "defer"),
    "COHORT_WAIT": ("auto", "auto", "spin", "park"),
    "COHORT_ALLREDUCE": ("auto", "auto", "rounds", "schedule"),
    "COHORT_ALLTOALL": ("auto", "auto", "rounds", "schedule"),
    "COHORT_CHECK": ("on", "on", "members", "off"),
}
# A round takes milliseconds; a busy machine makes a thousand times as much of it.
HANG_SECONDS = 180


class Program:
    """One of the random programs, and how to run it."""

    def __init__(self, options, hosts, number):
        draw = random.Random(f"{options.seed}/{number}")
        self.seed = draw.randrange(1 << 48)
        self.ranks = draw.choice((1, 2, 2, 3, 4, 4, 5, 8, 16))
        self.two_nodes = self.ranks > 1 and draw.random() < 0.4
        self.settings = {"COHORT_PROGRESS": draw.choice(options.policies)}
        for name, values in SETTINGS.items():
            value = draw.choice(values)
            if value != values[0]:
                self.settings[name] = value
        launch = [options.built / "pip-exec", "-n", self.ranks]
        if self.two_nodes:
            share = f"{self.ranks - self.ranks // 2},{self.ranks // 2}"
            hydra = hosts.hydra(cache() / "mpich-venv/bin/mpiexec.hydra")
            launch = [*hydra, "-n", 2, options.built / "pip-exec", "-n", share]
        kinds = ["--kinds", options.kinds] if options.kinds else []
        self.command = [str(word) for word in [*launch, options.program, self.seed, *kinds]]

    def run(self, *arguments, limit):
        """The output, and what was wrong if anything was: no round may take longer than `limit` seconds."""
        environment = {**os.environ, **self.settings}
        words = [*self.command, *(str(argument) for argument in arguments), "--list"]
        with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", start_new_session=True) as job:
            lines = queue.Queue()
            threading.Thread(target=read_lines, args=(job.stdout, lines), daemon=True).start()
            output, is_late = [], False
            while True:
                try:
                    line = lines.get(timeout=20 if is_late else limit)
                except queue.Empty:
                    # First with a word, so that the launcher says what it knows.
                    os.killpg(job.pid, signal.SIGKILL if is_late else signal.SIGTERM)
                    is_late = True
                    continue
                if line is None:
                    break
                output.append(line)
        output = "".join(output)
        if is_late:
            return output, f"a round did not end within {limit} s"
        if job.returncode != 0:
            return output, f"status {job.returncode}"
        return output, None if DONE.search(output) else "it did not say that none was wrong"

    def shown(self, *arguments):
        """The command as one types it."""
        settings = [f"{name}={value}" for name, value in self.settings.items()]
        return " ".join([*settings, shlex.join([*self.command, *(str(argument) for argument in arguments)])])

    def fails(self, *arguments, tries=5):
        """Whether one of some tries fails."""
        return any(self.run(*arguments, limit=30)[1] for _ in range(tries))

    def shrink(self, output, first):
        """The shortest arguments found that still fail."""
        found = WRONG.search(output)
        listed = re.findall(r"^round (\d+)", output, re.MULTILINE)
        last = int(found[1]) if found else int(listed[-1]) if listed else None
        if last is None:
            return first
        best = ["--rounds", f"0-{last}"]
        for count in (1, 2, 4, 16, 64):
            shorter = ["--rounds", f"{max(0, last - count + 1)}-{last}"]
            if self.fails(*shorter):
                best = shorter
                break
        effort = 256
        while effort >= 1 and self.fails(*best[:2], "--effort", effort):
            best = [*best[:2], "--effort", effort]
            effort //= 2
        return best


def read_lines(stream, lines):
    """Puts the lines of a stream into a queue, and None at its end."""
    for line in stream:
        lines.put(line)
    lines.put(None)


def policies(built):
    """All policies that there are, the default twice."""
    listed = subprocess.run([built / "pip-exec", "--policies"], stdout=subprocess.PIPE, text=True, check=True)
    names = [line.split("\t")[0] for line in listed.stdout.splitlines()]
    return [names[0], *names]


def compile_program(built, folder):
    """Soak's own program, by our wrapper."""
    program = pathlib.Path(folder) / "soak"
    subprocess.run([built / "mpicc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program,
                    *sorted(HERE.glob("*.c")), "-lpthread"], check=True)
    return program


def cut_all(options, hosts, until):
    """Ends programs in the middle until it is time: the status."""
    failures, number = 0, options.first
    while time.monotonic() < until:
        cut = Cut(options, Program(options, hosts, number), number)
        output, problem = cut.run()
        if problem:
            failures += 1
            print(f"soak: program {number} failed: {problem}", cut.shown(), *output.splitlines()[-40:], sep="\n  ",
                  flush=True)
        number += 1
    verdict = "all have ended" if failures == 0 else f"{failures} failed"
    print(f"soak: seed {options.seed}, {number - options.first} programs were ended in the middle, {verdict}")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--built", type=pathlib.Path, required=True, help="folder with pip-exec")
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=8, help="of each program")
    parser.add_argument("--kinds", help="of rounds, with commas: burst makes most messages in a minute")
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--cut", action="store_true", help="end each in the middle: the job has to end, and to fail")
    options = parser.parse_args()
    options.built = options.built.resolve()
    missing = [name for name in ("pip-exec", "mpicc") if not (options.built / name).is_file()]
    if missing:
        parser.error(f"{options.built} has no {' and no '.join(missing)}: --built is the folder with what "
                     "`make build` makes, target/release")
    options.policies = policies(options.built)
    until = time.monotonic() + 60 * options.minutes
    messages, volume, failures, number = 0, 0, 0, options.first
    with tempfile.TemporaryDirectory() as folder, Hosts() as hosts:
        options.folder, options.program = folder, compile_program(options.built, folder)
        if options.cut:
            return cut_all(options, hosts, until)
        while time.monotonic() < until:
            program = Program(options, hosts, number)
            seconds = min(options.seconds, max(1, until - time.monotonic()))
            arguments = ["--seconds", f"{seconds:.0f}"]
            output, problem = program.run(*arguments, limit=HANG_SECONDS)
            done = DONE.search(output)
            if done:
                messages, volume = messages + int(done[1]), volume + int(done[2])
            if problem:
                failures += 1
                said = [line for line in output.splitlines() if not line.startswith("round ")]
                print(f"soak: program {number} failed: {problem}", *said[-40:], sep="\n  ")
                print(f"soak: to see it again: {program.shown(*program.shrink(output, arguments))}", flush=True)
            number += 1
    count = number - options.first
    verdict = "none wrong" if failures == 0 else f"{failures} failed"
    print(f"soak: seed {options.seed}, {count} programs, {messages} messages, {volume} bytes, {verdict}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
