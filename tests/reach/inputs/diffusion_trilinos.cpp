// Epetra's distributed matrix of a chain, solved by AztecOO with ML's algebraic multigrid.
#include <AztecOO.h>
#include <Epetra_CrsMatrix.h>
#include <Epetra_Map.h>
#include <Epetra_MpiComm.h>
#include <Epetra_Vector.h>
#include <cstdio>
#include <mpi.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    {
        Epetra_MpiComm comm(MPI_COMM_WORLD);
        const int n = 500;
        Epetra_Map map(n, 0, comm);
        Epetra_CrsMatrix matrix(Copy, map, 3);
        for (int local = 0; local < map.NumMyElements(); local++) {
            int row = map.GID(local), columns[] = {row - 1, row, row + 1};
            double values[] = {-1.0, 2.1, -1.0};
            int first = row == 0, count = 3 - first - (row == n - 1);
            matrix.InsertGlobalValues(row, count, values + first, columns + first);
        }
        matrix.FillComplete();
        Epetra_Vector solution(map), right(map);
        right.PutScalar(1.0);
        AztecOO solver(&matrix, &solution, &right);
        solver.SetAztecOption(AZ_solver, AZ_cg);
        solver.SetAztecOption(AZ_precond, AZ_dom_decomp);
        solver.SetAztecOption(AZ_subdomain_solve, AZ_icc);
        solver.SetAztecOption(AZ_output, AZ_none);
        solver.Iterate(500, 1e-12);
        double norm, mean;
        solution.Norm2(&norm);
        solution.MeanValue(&mean);
        if (comm.MyPID() == 0)
            std::printf("norm %d %.9f %.9f\n", comm.NumProc(), norm, mean);
    }
    MPI_Finalize();
    return 0;
}
