"""The Laplacian of a square: a distributed matrix, conjugate gradients, multigrid of hypre."""
import sys

import petsc4py

petsc4py.init(sys.argv)
from petsc4py import PETSc

n = 32
matrix = PETSc.Mat().createAIJ([n * n, n * n], nnz=5)
begin, end = matrix.getOwnershipRange()
for row in range(begin, end):
    i, j = divmod(row, n)
    matrix[row, row] = 4.0
    for other, inside in [(row - n, i > 0), (row + n, i < n - 1), (row - 1, j > 0), (row + 1, j < n - 1)]:
        if inside:
            matrix[row, other] = -1.0
matrix.assemble()
solution, right = matrix.createVecs()
right.set(1.0)
for kind in ["jacobi", "bjacobi", "gamg", "hypre"]:
    solver = PETSc.KSP().create()
    solver.setOperators(matrix)
    solver.setType("cg")
    solver.getPC().setType(kind)
    solver.setTolerances(rtol=1e-10)
    solution.set(0.0)
    solver.solve(right, solution)
    PETSc.Sys.Print("norm", kind, PETSc.COMM_WORLD.size, repr(round(solution.norm(), 9)), solver.converged)
