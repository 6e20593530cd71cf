"""Quantum chemistry: NWChem (Fortran, with ComEx over one-sided communication) and BAGEL (C++)."""

import functools
import re
import shutil

from setting import HERE, Folder, Wrong

# Hartree; the energies of MPICH on one rank agree with these.
NWCHEM = {
    "scf": -76.010504991034,
    "mp2": -76.199026586431,
    "b3lyp": -76.408731347070,
    "optimize": -76.010746508414,
}
BAGEL = -76.2283872517


def energy(text, pattern, expected, tolerance):
    """The last energy of an output, which must be the expected one."""
    found = re.findall(pattern, text)
    if not found:
        raise Wrong("no energy in the output")
    if abs(float(found[-1]) - expected) > tolerance:
        raise Wrong(f"the energy is {found[-1]} instead of {expected}")
    return f"energy {found[-1]}"


def nwchem(place):
    """Water in 6-31G*, with each method on each number of ranks."""
    def run(who, name, ranks):
        with Folder() as folder:
            shutil.copy(HERE / "inputs" / f"{name}.nw", folder)
            libraries = f"{place.codes}/usr/share/nwchem/libraries/"
            text = place.run(who, ranks, [place.codes / "usr/bin/nwchem.mpich", f"{name}.nw"], folder,
                             NWCHEM_BASIS_LIBRARY=libraries)
        return energy(text, r"Total (?:SCF|DFT|MP2) energy\s*=?\s*(-[\d.]+)", NWCHEM[name], 1e-9)

    for name in ["scf", "mp2"] if place.quick else NWCHEM:
        if not place.quick:
            yield f"{name} (MPICH)", 1, functools.partial(run, "mpich", name, 1)
        for ranks in [2, 4] if place.quick else [1, 2, 4, 8]:
            yield name, ranks, functools.partial(run, "ours", name, ranks)


def bagel(place):
    """Water in cc-pVDZ: Hartree-Fock and MP2 with density fitting."""
    def run(who, ranks):
        with Folder() as folder:
            text = (HERE / "inputs/water.json").read_text()
            (folder / "water.json").write_text(text.replace("@BASIS@", f"{place.cache}/codes-bagel/usr/share/bagel"))
            command = [place.cache / "codes-bagel/usr/bin/BAGEL", "water.json"]
            text = place.run(who, ranks, command, folder, BAGEL_NUM_THREADS="1")
        return energy(text, r"MP2 total energy:\s+(-[\d.]+)", BAGEL, 1e-9)

    if place.quick or not (place.cache / "codes-bagel/usr/bin/BAGEL").exists():
        return
    yield "mp2 (MPICH)", 1, functools.partial(run, "mpich", 1)
    # Four orbitals are correlated: BAGEL has no part for more ranks.
    for ranks in [1, 2, 4]:
        yield "mp2", ranks, functools.partial(run, "ours", ranks)
