"""The lowest eigenvalues of a chain of springs."""
import sys

import slepc4py

slepc4py.init(sys.argv)
from petsc4py import PETSc
from slepc4py import SLEPc

n = 60
matrix = PETSc.Mat().createAIJ([n, n], nnz=3)
for row in range(*matrix.getOwnershipRange()):
    matrix[row, row] = 2.0
    if row > 0:
        matrix[row, row - 1] = -1.0
    if row < n - 1:
        matrix[row, row + 1] = -1.0
matrix.assemble()
solver = SLEPc.EPS().create()
solver.setOperators(matrix)
solver.setProblemType(SLEPc.EPS.ProblemType.HEP)
solver.setWhichEigenpairs(SLEPc.EPS.Which.LARGEST_REAL)
solver.setDimensions(4)
solver.setTolerances(1e-10, 1000)
solver.solve()
for place in range(4):
    PETSc.Sys.Print("value", PETSc.COMM_WORLD.size, f"{solver.getEigenvalue(place).real:.8f}")
