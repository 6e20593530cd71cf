"""Molecules and solids."""

import re
import shutil

from setting import INPUTS, Case, Wrong


def numbers(pattern, text, least=1):
    """All numbers that the groups of a pattern find."""
    found = re.findall(pattern, text, re.M)
    if len(found) < least:
        raise Wrong(f"no {pattern} in the output\n{text[-1500:]}")
    words = [word for match in found for word in ([match] if isinstance(match, str) else match)]
    return [float(word.replace("D", "E")) for word in words]


def lammps(job):
    job.input("melt.in")
    text = job.mpi("lmp", "-in", "melt.in")
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


def espresso(job):
    text = job.mpi("pw.x", "-in", job.input("si.in"))
    ranks = re.findall(r"running on +(\d+) processors", text)[-1]
    return [ranks, *numbers(r"^!? +total energy +=\s+(\S+) Ry", text, 3)]


def cp2k(job):
    text = job.mpi("cp2k.psmp", "-i", job.input("h2.inp"), CP2K_DATA_DIR="/usr/share/cp2k")
    return numbers(r"ENERGY\| Total FORCE_EVAL .*?:?\s+(-\d\S+)$", text)


def elk(job):
    job.input("elk.in")
    job.mpi("elk-lapw")
    return [float(word) for word in job.read("TOTENERGY.OUT").split()][:6] or wrong("no energy")


def abinit(job):
    text = job.mpi("abinit", job.input("si.abi"))
    return numbers(r"^ ETOT +\d+ +(\S+)", text, 3)


def nwchem(job):
    shutil.copy(INPUTS.parent.parent / "judges/inputs/scf.nw", job.folder)
    text = job.mpi("nwchem.openmpi", "scf.nw", NWCHEM_BASIS_LIBRARY="/usr/share/nwchem/libraries/")
    return numbers(r"Total SCF energy\s*=\s*(-[\d.]+)", text)


def mpqc(job):
    text = job.mpi("mpqc", "-messagegrp", "<MPIMessageGrp>:()", job.input("water.mpqc"))
    return numbers(r"iter +\d+ energy = +(\S+)", text, 3)


def gpaw(job):
    text = job.mpi("gpaw", "python", job.input("hydrogen_gpaw.py"), GPAW_SETUP_PATH="/usr/share/gpaw-setups",
                   HOME=job.folder)
    return numbers(r"^energy (\d+) (\S+)", text)


def wrong(text):
    raise Wrong(text[-1500:])


CASES = [
    Case("lammps", "lammps", "its melt of Lennard-Jones atoms, 864 of them", "thermodynamic output", lammps, 1e-6,
         quick=True),
    Case("gromacs", "gromacs", "216 molecules of water, 50 steps", "energies", gromacs, 1e-4),
    Case("neuron", "neuron", "a ring of 8 cells, 100 ms", "times of all spikes", neuron),
    Case("quantum-espresso", "quantum-espresso", "silicon, 2 x 2 x 2 k points", "total energies", espresso, 1e-7,
         needs=("quantum-espresso-data",)),
    Case("cp2k", "cp2k", "hydrogen, DZVP-GTH", "energy", cp2k, 1e-9, needs=("cp2k-data",)),
    Case("elk", "elk-lapw", "aluminium, 2 x 2 x 2 k points", "total energies", elk, 1e-7),
    Case("abinit", "abinit", "silicon, 10 k points", "total energies", abinit, 1e-9, needs=("abinit-data",)),
    Case("nwchem", "nwchem-openmpi", "water, 6-31G*", "energy of SCF", nwchem, 1e-9),
    Case("mpqc", "mpqc", "water, STO-3G", "energies of all iterations", mpqc, 1e-9),
    Case("gpaw", "gpaw", "hydrogen, plane waves", "energy", gpaw, 1e-6, needs=("gpaw-data",)),
    Case("molds", "molds", "water, MNDO", "energy", molds, 1e-8),
]
