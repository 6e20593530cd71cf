"""Runs a program and measures what it took: seconds, CPU seconds of all its processes, and energy where it can be read.

This process adopts what a launcher leaves behind, so that no process of a run escapes the count.
"""

import ctypes
import dataclasses
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time

POWERCAP = pathlib.Path("/sys/class/powercap")
PR_SET_CHILD_SUBREAPER = 36
LEFT_BEHIND = 2.0  # seconds that a process may outlive its launcher


@dataclasses.dataclass
class Run:
    """What one run took. `joules` is None where the machine does not say; `others` is what everybody else took of the
    CPUs meanwhile, as a share; `text` has both streams."""

    code: int
    total: float
    cpu: float
    joules: float | None
    others: float
    text: str


class Energy:
    """The counters of the packages of processors, in microjoules, which begin anew at a maximum."""

    def __init__(self, folder=POWERCAP):
        self.zones = []
        for zone in sorted(folder.glob("*:*")) if folder.is_dir() else []:
            # A zone of a zone (a core, the memory) is part of its package: `intel-rapl:0:1` of `intel-rapl:0`.
            if zone.name.count(":") == 1 and self.value(zone / "energy_uj") is not None:
                self.zones.append(zone)

    @staticmethod
    def value(file):
        try:
            return int(file.read_text())
        except (OSError, ValueError):
            return None

    def read(self):
        return [self.value(zone / "energy_uj") for zone in self.zones]

    def joules(self, before, after):
        """Joules between two readings, or None."""
        if not self.zones or None in before or None in after:
            return None
        total = 0
        for zone, first, last in zip(self.zones, before, after):
            total += last - first if last >= first else last - first + (self.value(zone / "max_energy_range_uj") or 0)
        return total / 1e6


def busy():
    """CPU seconds of the whole machine, with those that its host took away."""
    fields = list(map(int, pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
    idle, waiting = fields[3], fields[4]
    return (sum(fields) - idle - waiting) / os.sysconf("SC_CLK_TCK")


def adopt():
    """From now on, orphans of our children are ours."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("this kernel has no subreapers")


def wait_for(pid, seconds):
    """Whether the process ends in time."""
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(max(0, seconds) * 1000))
    finally:
        os.close(descriptor)


def reap_all(spared):
    """CPU seconds of all children but `spared`; those that do not end soon are killed."""
    cpu, limit = 0.0, time.monotonic() + LEFT_BEHIND
    while True:
        mine = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        left = [int(pid) for pid in mine if int(pid) not in spared]
        if not left:
            return cpu
        for pid in left:
            if not wait_for(pid, limit - time.monotonic()):
                os.kill(pid, signal.SIGKILL)
            _, _, usage = os.wait4(pid, 0)
            cpu += usage.ru_utime + usage.ru_stime


def measure(command, env, seconds, folder=None, spared=(), energy=Energy()):
    """Runs a command with `env`; one that takes longer than `seconds` is killed, and its code is None. `spared` are
    processes of ours that go on."""
    with tempfile.TemporaryFile() as output:
        before, all_before, begin = energy.read(), busy(), time.monotonic()
        process = subprocess.Popen(
            [str(word) for word in command], env=env, cwd=folder, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )
        ended = wait_for(process.pid, seconds)
        total, after, all_after = time.monotonic() - begin, energy.read(), busy()
        if not ended:
            os.killpg(process.pid, signal.SIGKILL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu = usage.ru_utime + usage.ru_stime + reap_all(spared)
        output.seek(0)
        text = output.read().decode(errors="replace")
    others = max(0.0, all_after - all_before - cpu) / (total * os.cpu_count())
    return Run(process.returncode if ended else None, total, cpu, energy.joules(before, after), others, text)
