"""Molecules and solids."""

import re
import shutil

from setting import Case, Wrong


def numbers(pattern, text, least=1):
    """All numbers that the groups of a pattern find."""
    found = re.findall(pattern, text, re.M)
    if len(found) < least:
        raise Wrong(f"no {pattern} in the output\n{text[-1500:]}")
    return [float(word.replace("D", "E")) for match in found for word in ([match] if isinstance(match, str) else match)]


def lammps(job):
    job.input("melt.in")
    text = job.mpi("lmp", "-in", "melt.in")
    if f"{job.ranks} by" not in text.replace("1 by", f"{job.ranks} by") and "MPI processor grid" not in text:
        raise Wrong(text)
    return [re.findall(r"Loop time of .* on (\d+) procs", text)[-1],
            *numbers(r"^ +(\d+) +(\S+) +(\S+) +(\S+) +(\S+) +(\S+) *$", text, 6)]


def gromacs(job):
    shutil.copy("/usr/share/gromacs/top/spc216.gro", job.folder / "water.gro")
    job.input("water.top")
    job.input("water.mdp")
    job.tool("gmx", "grompp", "-f", "water.mdp", "-c", "water.gro", "-p", "water.top", "-o", "run.tpr", "-maxwarn", "5")
    job.mpi("gmx_mpi", "mdrun", "-s", "run.tpr", "-deffnm", "out", "-ntomp", "1", "-reprod", "-noconfout")
    blocks = re.findall(r"Energies \(kJ/mol\)\n((?:.+\n)+)", job.read("out.log"))
    return [float(word) for block in blocks[:6] for word in re.findall(r"-?\d\.\d+e[+-]\d+", block)]


def neuron(job):
    job.input("ring.hoc")
    text = job.mpi("nrniv", "-mpi", "-nobanner", "ring.hoc")
    return sorted(line for line in text.splitlines() if line.startswith("spike")) or wrong(text)


def molds(job):
    job.input("water.mol")
    text = job.mpi("molds", "water.mol")
    return numbers(r"Electronic energy\s*\S*:?\s+(-?\d\S+)", text)


def wrong(text):
    raise Wrong(text[-1500:])


CASES = [
    Case("lammps", "lammps", "its melt of Lennard-Jones atoms, 864 of them", "thermodynamic output", lammps, 1e-6),
    Case("gromacs", "gromacs", "216 molecules of water, 50 steps", "energies", gromacs, 1e-4),
    Case("neuron", "neuron", "a ring of 8 cells, 100 ms", "times of all spikes", neuron),
    Case("molds", "molds", "water, MNDO", "energy", molds, 1e-8),
]
