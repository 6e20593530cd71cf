"""Poisson's equation, as in dolfinx's demonstration, without pictures."""
import numpy as np
import ufl
from dolfinx import fem, mesh
from mpi4py import MPI
from petsc4py.PETSc import ScalarType
from ufl import ds, dx, grad, inner

domain = mesh.create_rectangle(comm=MPI.COMM_WORLD, points=((0.0, 0.0), (2.0, 1.0)), n=(32, 16),
                               cell_type=mesh.CellType.triangle)
space = fem.FunctionSpace(domain, ("Lagrange", 1))
facets = mesh.locate_entities_boundary(domain, dim=1, marker=lambda x: np.logical_or(np.isclose(x[0], 0.0),
                                                                                      np.isclose(x[0], 2.0)))
dofs = fem.locate_dofs_topological(V=space, entity_dim=1, entities=facets)
bc = fem.dirichletbc(value=ScalarType(0), dofs=dofs, V=space)
u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
x = ufl.SpatialCoordinate(domain)
f = 10 * ufl.exp(-((x[0] - 0.5) ** 2 + (x[1] - 0.5) ** 2) / 0.02)
a, right = inner(grad(u), grad(v)) * dx, inner(f, v) * dx + inner(ufl.sin(5 * x[0]), v) * ds
problem = fem.petsc.LinearProblem(a, right, bcs=[bc], petsc_options={"ksp_type": "cg", "ksp_rtol": 1e-12,
                                                                     "pc_type": "jacobi"})
solution = problem.solve()
square = domain.comm.allreduce(fem.assemble_scalar(fem.form(inner(solution, solution) * dx)))
if domain.comm.rank == 0:
    print("norm", domain.comm.size, f"{square ** 0.5:.10f}")
