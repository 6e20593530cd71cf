"""A pulse in a cavity with absorbing walls."""
import meep as mp

simulation = mp.Simulation(cell_size=mp.Vector3(6, 6), resolution=10, boundary_layers=[mp.PML(1.0)],
                           geometry=[mp.Cylinder(radius=1, material=mp.Medium(epsilon=12))],
                           sources=[mp.Source(mp.GaussianSource(0.3, fwidth=0.2), component=mp.Ez,
                                              center=mp.Vector3(1.5, 0.2))])
simulation.run(until=30)
values = [simulation.get_field_point(mp.Ez, mp.Vector3(x / 3, -x / 5)).real for x in range(-4, 5)]
if mp.am_master():
    for value in values:
        print("field", mp.count_processors(), f"{value:.12e}")
