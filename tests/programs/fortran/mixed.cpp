// A C++ program of a job whose other ranks are Fortran (mixed.f90): messages, and a Fortran procedure with a
// communicator.
#include <mpi.h>

#include <cstdio>
#include <vector>

extern "C" void totals_(const MPI_Fint *comm, const double *value, double *total, MPI_Fint *size);

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm reversed;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    const MPI_Fint handle = MPI_Comm_c2f(reversed);
    const double value = rank + 0.5;
    double total = 0;
    MPI_Fint counted = 0;
    totals_(&handle, &value, &total, &counted);
    // What the peer packs in Fortran: a number, a LOGICAL, a string.
    std::vector<char> bytes(100);
    MPI_Status status;
    MPI_Recv(bytes.data(), 100, MPI_PACKED, size - 1 - rank, 7, MPI_COMM_WORLD, &status);
    int position = 0, number = 0, truth = 0;
    char text[5] = {};
    MPI_Unpack(bytes.data(), 100, &position, &number, 1, MPI_INTEGER, MPI_COMM_WORLD);
    MPI_Unpack(bytes.data(), 100, &position, &truth, 1, MPI_LOGICAL, MPI_COMM_WORLD);
    MPI_Unpack(bytes.data(), 100, &position, text, 4, MPI_CHARACTER, MPI_COMM_WORLD);
    MPI_Fint fortran_status[MPI_F_STATUS_SIZE];
    MPI_Status_c2f(&status, fortran_status);
    MPI_Status again;
    MPI_Status_f2c(fortran_status, &again);
    const bool right = total == size * size / 2.0 && counted == size && number == size - 1 - rank && truth != 0 &&
                       text[0] == 'c' && text[3] == 'z' && again.MPI_SOURCE == size - 1 - rank && again.MPI_TAG == 7;
    MPI_Comm_free(&reversed);
    if (!right) {
        std::printf("rank %d: total %g of %d, number %d, text %s\n", rank, total, counted, number, text);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Finalize();
    std::printf("done %d\n", rank);
    return 0;
}
