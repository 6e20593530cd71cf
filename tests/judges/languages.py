"""Fortran beside other languages and tools: coarrays, Python, C and C++, profiling tools, other compilers."""

import functools
import os
import shutil

from nas import finish
from setting import PROGRAMS, Folder, Wrong, execute


def coarrays(place):
    """OpenCoarrays, as Debian builds it for MPICH."""
    def run(ranks):
        library = next((place.codes / "lib").glob("libcaf_mpich.so.3"))
        with Folder() as folder:
            program = folder / "coarrays"
            execute(["gfortran", "-O2", "-fcoarray=lib", "-o", str(program), str(PROGRAMS / "fortran/coarrays.f90"),
                     "-Wl,--unresolved-symbols=ignore-in-shared-libs", str(library)], folder)
            finish(place.run("ours", ranks, [program], folder), ranks)
        return "sums, puts, gets, events and locks right"

    for ranks in [4] if place.quick else [1, 2, 4, 8]:
        yield "OpenCoarrays 2.10.1", ranks, functools.partial(run, ranks)


def f2py(place):
    """A module that f2py makes, called with communicators of mpi4py."""
    def run(ranks):
        python = str(place.cache / "mpi4py-venv/bin/python")
        wrapper = place.built / "mpifort"
        with Folder() as folder:
            shutil.copy(PROGRAMS / "fortran/totals.f90", folder)
            shutil.copy(PROGRAMS / "python/totals.py", folder)
            execute([python, "-m", "numpy.f2py", f"--f90exec={wrapper}", f"--f77exec={wrapper}", "-m", "totals", "-c",
                     "totals.f90"], folder, environment={**os.environ, "LD_LIBRARY_PATH": ""})
            finish(place.run("ours", ranks, [python, "totals.py"], folder), ranks)
        return "sums right"

    for ranks in [3] if place.quick else [1, 2, 4, 8]:
        yield "f2py with mpi4py", ranks, functools.partial(run, ranks)


def tool(place):
    """A preloaded library in Fortran that defines `mpi_send` and calls `pmpi_send`."""
    def run():
        ranks = 2
        with Folder() as folder:
            wrapper, source = str(place.built / "mpifort"), PROGRAMS / "fortran"
            execute([wrapper, "-shared", "-fPIC", "-o", str(folder / "tool.so"), str(source / "tool.f90")], folder)
            execute([wrapper, "-O2", "-o", str(folder / "lu"), str(source / "nas/lu.f90")], folder)
            text = place.run("ours", ranks, ["-genv", "LD_PRELOAD", folder / "tool.so", folder / "lu"], folder)
            lines = [f"tool: rank {rank} sends 1440" for rank in range(ranks)]
            if sorted(text.splitlines()) != sorted(lines + [f"done {rank}" for rank in range(ranks)]):
                raise Wrong(text)
        return "each call of MPI_SEND seen once"

    yield "PMPI in Fortran", 2, run


def mixed(place):
    """A C++ main program with a Fortran library, and a Fortran program in a job with it."""
    def run():
        source = PROGRAMS / "fortran"
        mpicxx = ["c++", f"-I{place.cache}/mpich-venv/include"]
        link = [f"-L{place.built}", f"-L{place.built}/fortran", "-lmpifort", "-lmpi", "-lgfortran",
                f"-Wl,-rpath,{place.built}:{place.built}/fortran"]
        with Folder() as folder:
            execute([str(place.built / "mpifort"), "-c", "-fPIC", "-o", str(folder / "totals.o"),
                     str(source / "totals.f90")], folder)
            execute([*mpicxx, "-o", str(folder / "main"), str(source / "mixed.cpp"), str(folder / "totals.o"), *link],
                    folder)
            execute([str(place.built / "mpifort"), "-o", str(folder / "other"), str(source / "mixed.f90"),
                     str(folder / "totals.o")], folder)
            text = place.run("ours", 2, [folder / "main", ":", "-n", "2", folder / "other"], folder)
            finish(text, 4)
        return "sums right"

    yield "C++ and Fortran, one job", "2+2", run


def flang(place):
    """The module and `mpif.h`, compiled by LLVM's Fortran compiler."""
    compiler = place.cache / "codes-flang/usr/bin/flang-new-19"

    def run(ranks):
        environment = {**os.environ, "LD_LIBRARY_PATH": str(place.cache / "codes-flang/lib")}
        with Folder() as folder:
            execute([str(compiler), "-module-dir", str(folder), "-fsyntax-only", str(place.built / "include/mpi.f90")],
                    folder, environment=environment)
            module = folder / "mpi_f08.o"
            execute([str(compiler), "-module-dir", str(folder), "-c", "-o", str(module),
                     str(place.built / "include/mpi_f08.f90")], folder, environment=environment)
            for name in ["arguments.f90", "callbacks.f90", "strings.f90", "fixed.f", "derived.f90", "pending.f90",
                         "sections.f90", "nas/sp.f90"]:
                program = folder / name.replace(".", "-").replace("/", "-")
                execute([str(place.built / "mpifort"), f"-fc={compiler}", "-J", str(folder), "-o", str(program),
                         str(PROGRAMS / "fortran" / name), str(module)], folder, environment=environment)
                finish(place.run("ours", ranks, [program], folder), ranks)
        return "programs of all three interfaces right"

    if not place.quick and compiler.exists():
        yield "flang 19", 2, functools.partial(run, 2)
