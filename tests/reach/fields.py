"""Flows, waves and pictures: programs that solve equations of fields."""

import os
import re
import shutil

from setting import Case, Wrong


def numbers(pattern, text, least=1):
    """All numbers that the groups of a pattern find."""
    found = re.findall(pattern, text, re.M)
    if len(found) < least:
        raise Wrong(f"no {pattern} in the output\n{text[-1500:]}")
    return [float(word) for match in found for word in ([match] if isinstance(match, str) else match)]


def openfoam(job):
    shutil.copytree(job.input_folder("cavity"), job.folder / "cavity")
    case = job.folder / "cavity"
    control = case / "system/decomposeParDict"
    control.write_text(control.read_text().replace("@RANKS@", str(job.ranks)))
    setting = {"WM_PROJECT_DIR": "/usr/share/openfoam", "FOAM_ETC": "/usr/share/openfoam/etc", "WM_PROJECT": "OpenFOAM",
               "WM_OPTIONS": "linux64GccDPInt32Opt", "LD_LIBRARY_PATH": "/usr/lib/openmpi-system"}
    for tool in [["blockMesh"], ["decomposePar"]]:
        job.tool(*tool, "-case", case, **setting)
    text = job.mpi("icoFoam", "-parallel", "-case", case, **setting)
    return numbers(r"Solving for \S+ Initial residual = (\S+), Final residual = (\S+), No Iterations (\d+)", text, 20)


def freefem(job):
    text = job.mpi("FreeFem++-mpi", "-nw", "-v", "0", job.input("poisson.edp"))
    return sorted(line for line in text.splitlines() if line.startswith("norm")) or unexpected(text)


def getdp(job):
    job.input("plate.msh")
    job.input("plate.pro")
    text = job.mpi("getdp", "plate.pro", "-msh", "plate.msh", "-solve", "Solve", "-pos", "Energy")
    return numbers(r"^0 (\S+)", job.read("energy.txt")) or unexpected(text)


def mpb(job):
    text = job.mpi("mpb-mpi", job.input("rods.ctl"))
    return [word for line in text.splitlines() if line.startswith("tefreqs:") for word in map(number, line.split(",")[1:])]


def meep(job):
    text = job.mpi("/usr/bin/python3", job.input("cavity_meep.py"), HOME=job.folder)
    return numbers(r"^field (\S+) (\S+)", text)


def paraview(job):
    text = job.mpi("pvbatch", job.input("contour_paraview.py"), HOME=job.folder)
    return sorted(line for line in text.splitlines() if line.startswith("values")) or unexpected(text)


def number(word):
    try:
        return float(word)
    except ValueError:
        return word.strip()


def unexpected(text):
    raise Wrong(text[-1500:])


CASES = [
    Case("openfoam", "openfoam", "icoFoam, cavity of 20 x 20, 20 steps", "residuals of all steps", openfoam, 1e-6),
    Case("freefem", "freefem++", "Poisson's equation with domain decomposition", "norms", freefem),
    Case("getdp", "getdp", "electrostatics of a plate", "energy", getdp, 1e-9),
    Case("mpb", "mpb-mpi", "bands of dielectric rods", "frequencies", mpb, 1e-6),
    Case("meep", "python3-meep-openmpi", "a pulse in a cavity", "fields", meep, 1e-9),
    Case("paraview", "paraview", "pvbatch: a contour of its wavelet", "cells, area", paraview, needs=("python3-paraview",)),
]
