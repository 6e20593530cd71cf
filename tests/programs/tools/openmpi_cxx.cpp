// C++ with the functions of C, compiled with the header that has the C++ bindings inline.
#include <cstdio>
#include <mpi.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, sum = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    // From the header: a communicator of C++ of a handle of C, and a datatype that is freed.
    MPI::Intracomm world = MPI::Intracomm(MPI_COMM_WORLD);
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI::Datatype datatype = MPI::Datatype(pair);
    datatype.Free();
    if (world.Get_rank() == rank && MPI_Datatype(datatype) == MPI_DATATYPE_NULL) std::printf("sum %d\n", sum);
    MPI_Finalize();
    return 0;
}
