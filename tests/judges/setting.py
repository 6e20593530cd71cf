"""Where the judges find programs and MPIs, and how they run one."""

import os
import pathlib
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE.parent / "programs"


class Wrong(Exception):
    """What a program did otherwise than it should."""


class Setting:
    """Folders, and whether only the short list runs."""

    def __init__(self, built, cache, quick, beside):
        self.built = pathlib.Path(built).resolve()
        self.cache = pathlib.Path(cache).resolve()
        self.codes = self.cache / "codes"
        self.quick = quick
        self.beside = beside

    def ours(self, ranks):
        """Starts ranks under Cohort, whose Fortran library is the only one on the loader's path."""
        return [str(self.built / "pip-exec"), "-n", str(ranks)], self.libraries()

    def mpich(self, ranks):
        """Starts ranks under MPICH's wheel, with Debian's Fortran library of MPICH."""
        library = self.cache / "mpich-fortran/lib"
        return [str(self.cache / "mpich-venv/bin/mpiexec"), "-n", str(ranks)], f"{self.libraries()}:{library}"

    def libraries(self):
        """What the programs need beside MPI."""
        return f"{self.codes}/lib:{self.cache}/codes-bagel/lib"

    def run(self, who, ranks, command, folder, seconds=300, code=0, **variables):
        """What the command printed; `who` is `ours` or `mpich`."""
        launcher, library = getattr(self, who)(ranks)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COHORT_")}
        environment.update(variables, LD_LIBRARY_PATH=library, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
        return execute(launcher + [str(word) for word in command], folder, seconds, code, environment)


def execute(command, folder, seconds=300, code=0, environment=None):
    """Both streams of a command that ends with `code` in time."""
    # A process group of its own, so that a launcher's ranks end with it.
    started = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
    )
    try:
        text, _ = started.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, 9)
        text, _ = started.communicate()
        raise Wrong(f"no end within {seconds} s: {' '.join(command)}\n{tail(text)}") from None
    if code is not None and started.returncode != code:
        raise Wrong(f"ended with {started.returncode}: {' '.join(command)}\n{tail(text)}")
    return text


def tail(text):
    """The last lines, for a message."""
    return "\n".join(text.splitlines()[-30:])


class Folder:
    """A folder that is gone when it is left."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="judges-"))
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)
