"""A molecule of hydrogen in plane waves, with k points."""
from ase import Atoms
from gpaw import GPAW, PW
from gpaw.mpi import world

atoms = Atoms("H2", positions=[(0, 0, 0), (0, 0, 0.74)], cell=(3, 3, 3.5), pbc=True)
atoms.calc = GPAW(mode=PW(150), xc="LDA", kpts=(2, 2, 2), txt=None, convergence={"energy": 1e-7})
energy = atoms.get_potential_energy()
if world.rank == 0:
    print("energy", world.size, f"{energy:.9f}")
