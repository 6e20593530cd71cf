// What C++ holds back by itself when a rank ends the job.
#include <mpi.h>

#include <iostream>

int main(int argc, char **argv)
{
    std::ios::sync_with_stdio(false);
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        std::cout << "whole\nbegun";
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
