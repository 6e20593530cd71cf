"""Programs of the soak that are ended in the middle, in all ways that jobs end: whatever the ranks were doing, the job
ends soon, fails, and leaves no process."""

import os
import pathlib
import random
import signal
import subprocess
import time

# More settings than those of whole programs: what a job says at its end is made from what ranks were killed in.
SETTINGS = {
    "COHORT_STATS": ("0", "1", "counters", "json:{folder}/stats.json", "html:{folder}/stats.html"),
    "COHORT_TRACE": ("", "", "{folder}/trace%n.json"),
    "COHORT_CHECK": ("on", "on", "all"),
}
OPTIONS = ((), (), ("--check",), ("--isolate",), ("--timeout", "1"))
TO_A_RANK = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM)
TO_A_LAUNCHER = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
# A node that is silent is missed after 5 s, and the most that an end may wait for another node comes to it.
SECONDS = 40


def processes(marker):
    """Name by process id, of all that have this word in their environment. A launcher's child without a name of its own
    is called so."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            if marker.encode() in (entry / "environ").read_bytes():
                parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[1]
                found[int(entry.name)] = (entry / "comm").read_text().strip(), int(parent)
        except OSError:
            pass
    return {pid: "a child" if found.get(parent, ("",))[0] == name == "pip-exec" else name
            for pid, (name, parent) in found.items()}


class Cut:
    """A way to end a program, and what is added to it."""

    def __init__(self, options, program, number):
        draw = random.Random(f"{options.seed}/{number}/cut")
        self.program = program
        self.delay = draw.uniform(0, 1.5)
        self.settings = {"COHORT_NET_TIMEOUT": "5"}
        for name, values in SETTINGS.items():
            value = draw.choice(values).format(folder=options.folder)
            if value:
                self.settings[name] = value
        self.options = draw.choice(OPTIONS)
        self.is_rank = draw.random() < 0.6
        self.signal = draw.choice(TO_A_RANK if self.is_rank else TO_A_LAUNCHER)
        self.place = draw.random()
        self.marker = f"COHORT_SOAK_NUMBER={os.getpid()}.{number}"

    def command(self):
        """The words of the program with those of this end."""
        words = list(self.program.command)
        place = words.index("-n", next(at for at, word in enumerate(words) if word.endswith("pip-exec")))
        return [*words[:place], *self.options, *words[place:]]

    def shown(self):
        """What is done, for a reader."""
        settings = {**self.program.settings, **self.settings}
        words = [f"{name}={value}" for name, value in settings.items()] + self.command()
        whom = "a rank" if self.is_rank else "a launcher"
        return f"{self.signal.name} to {whom} after {self.delay:.2f} s of: {' '.join(words)}"

    def send(self, job):
        """Sends the signal to one of the processes it is for, as soon as there is one."""
        wanted = "soak" if self.is_rank else "pip-exec"
        while job.poll() is None:
            pids = sorted(pid for pid, name in processes(self.marker).items() if name == wanted)
            if pids:
                try:
                    os.kill(pids[int(self.place * len(pids))], self.signal)
                    return
                except ProcessLookupError:
                    pass
            time.sleep(0.01)

    def run(self):
        """The output, and what was wrong if anything was."""
        name, value = self.marker.split("=")
        environment = {**os.environ, **self.program.settings, **self.settings, name: value}
        words = [*self.command(), "--seconds", "100"]
        with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", start_new_session=True) as job:
            time.sleep(self.delay)
            self.send(job)
            try:
                output, problem = job.communicate(timeout=SECONDS)[0], None
            except subprocess.TimeoutExpired:
                problem = f"it did not end within {SECONDS} s; there are still {processes(self.marker)}"
                os.killpg(job.pid, signal.SIGTERM)
                self.kill_all()
                output = job.communicate()[0]
        if problem is None and job.returncode == 0:
            problem = "its status is 0"
        return output, problem or self.left_over()

    def left_over(self):
        """What still runs of it after a while."""
        until = time.monotonic() + SECONDS
        while left := processes(self.marker):
            if time.monotonic() > until:
                self.kill_all()
                return f"it has left {left}"
            time.sleep(0.05)
        return None

    def kill_all(self):
        """Kills what is left of it."""
        for pid in processes(self.marker):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
