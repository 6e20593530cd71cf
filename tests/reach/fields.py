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
    job.write("plate.msh", mesh(16))
    job.input("plate.pro")
    text = job.mpi("getdp", "plate.pro", "-msh", "plate.msh", "-solve", "Solve", "-pos", "Energy")
    return [float(word) for word in job.read("energy.txt").split()] or unexpected(text)


def mesh(n):
    """A square of triangles in Gmsh's format 2; region 10, between the sides 1 and 2."""
    nodes = [f"{j * (n + 1) + i + 1} {i / n} {j / n} 0" for j in range(n + 1) for i in range(n + 1)]
    elements = []
    for j in range(n):
        for side, i in [(1, 0), (2, n)]:
            elements.append(f"1 2 {side} {side} {j * (n + 1) + i + 1} {(j + 1) * (n + 1) + i + 1}")
        for i in range(n):
            a = j * (n + 1) + i + 1
            elements += [f"2 2 10 10 {a} {a + 1} {a + n + 2}", f"2 2 10 10 {a} {a + n + 2} {a + n + 1}"]
    numbered = [f"{place + 1} {text}" for place, text in enumerate(elements)]
    return "\n".join(["$MeshFormat", "2.2 0 8", "$EndMeshFormat", "$Nodes", str(len(nodes)), *nodes, "$EndNodes",
                      "$Elements", str(len(numbered)), *numbered, "$EndElements", ""])


def mpb(job):
    text = job.mpi("mpb-mpi", job.input("rods.ctl"))
    rows = [line.split(",")[1:] for line in text.splitlines() if line.startswith("tefreqs:")]
    return [number(word) for row in rows for word in row]


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
    Case("paraview", "paraview", "pvbatch: a contour of its wavelet", "cells, area", paraview,
         needs=("python3-paraview",)),
]
