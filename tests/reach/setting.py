"""How a packaged program is run, under Cohort and under Debian's Open MPI, and how two results are compared."""

import dataclasses
import math
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import typing

HERE = pathlib.Path(__file__).resolve().parent
INPUTS = HERE / "inputs"
LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")


class Wrong(Exception):
    """What a program did otherwise than it should."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A program. `run` takes a Job and returns numbers and words, in an order that is the same in each run."""

    name: str
    package: str
    input: str
    check: str
    run: typing.Callable
    # How far numbers may be from those of Open MPI, relative to them; most programs add in the order of arrival.
    tolerance: float = 0.0
    ranks: tuple = (2, 4)
    quick: bool = False
    # What else the package manager shall bring.
    needs: tuple = ()


class Job:
    """One run: a folder, and the launcher of `who`, which is `ours` or `theirs`."""

    def __init__(self, place, who, ranks, folder):
        self.built, self.cache = place
        self.who, self.ranks, self.folder = who, ranks, pathlib.Path(folder)
        self.seconds = 0.0

    def launcher(self):
        if self.who == "ours":
            return [str(self.built / "pip-exec"), "-n", str(self.ranks)]
        return ["mpiexec.openmpi", "--oversubscribe", "--allow-run-as-root", "-n", str(self.ranks)]

    def mpi(self, *command, seconds=150, code=0, launcher=None, stdin=None, **variables):
        """Both streams of a parallel command, whose time counts; `launcher` is another Open MPI's."""
        begin, launch = time.monotonic(), self.launcher()
        if launcher and self.who == "theirs":
            launch[0] = str(launcher)
        text = execute([*launch, *map(str, command)], self.folder, seconds, code, self.variables(variables), stdin)
        self.seconds += time.monotonic() - begin
        return text

    def tool(self, *command, seconds=150, code=0, **variables):
        """Both streams of a command that prepares or looks at files."""
        return execute([*map(str, command)], self.folder, seconds, code, self.variables(variables))

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def read(self, name):
        try:
            return (self.folder / name).read_text(errors="replace")
        except OSError as error:
            raise Wrong(f"no {name}: {error}") from None

    def input(self, name, **values):
        """Copies a file of `inputs`; a value replaces its name between @s."""
        text = (INPUTS / name).read_text()
        for key, value in values.items():
            text = text.replace(f"@{key}@", str(value))
        return self.write(name, text)

    @staticmethod
    def input_folder(name):
        return INPUTS / name

    @staticmethod
    def variables(more):
        names = {"PATH", "HOME", "USER", "LANG", "TMPDIR", "TERM"}
        kept = {name: value for name, value in os.environ.items() if name in names}
        return {**kept, "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1", **{name: str(value) for name, value in more.items()}}


def execute(command, folder, seconds, code, environment, stdin=None):
    """Both streams of a command that ends with `code` in time."""
    # A process group of its own, so that a launcher's ranks end with it.
    started = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
    )
    try:
        text, _ = started.communicate(stdin or "", timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, 9)
        text, _ = started.communicate()
        raise Wrong(f"no end within {seconds} s: {' '.join(command)}\n{tail(text)}") from None
    if code is not None and started.returncode != code:
        raise Wrong(f"ended with {started.returncode}: {' '.join(command)}\n{tail(text)}")
    return text


def tail(text):
    """The last lines, for a message."""
    return "\n".join(text.splitlines()[-25:])


def compare(ours, theirs, tolerance):
    """Raises Wrong unless two results agree."""
    if len(ours) != len(theirs) or not ours:
        raise Wrong(f"{len(ours)} values {ours[:6]} instead of {len(theirs)}: {theirs[:6]}")
    for place, (mine, other) in enumerate(zip(ours, theirs)):
        same = mine == other
        if not same and isinstance(mine, float) and isinstance(other, float):
            same = math.isclose(mine, other, rel_tol=tolerance, abs_tol=tolerance)
        if not same:
            raise Wrong(f"value {place} is {mine!r}, with Open MPI {other!r}")


class Folder:
    """A folder that is gone when it is left."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="reach-"))
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)
