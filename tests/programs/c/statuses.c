// Counts of statuses that the program sets, up to the largest.
//# ranks: 1
//# abi: mpich, mpi5, openmpi
#include "check.h"

static void keeps(long long elements, MPI_Datatype datatype, long long size) {
    MPI_Status status;
    MPI_Count count = -1;
    int flag = -1, wanted = elements % 2;
    memset(&status, 0x5a, sizeof status);
    MPI_Status_set_cancelled(&status, wanted);
    CHECK_EQ(MPI_Status_set_elements_x(&status, datatype, elements), MPI_SUCCESS);
    CHECK_EQ(MPI_Get_elements_x(&status, datatype, &count), MPI_SUCCESS);
    CHECK_EQ(count, elements);
    CHECK_EQ(MPI_Get_elements_x(&status, MPI_BYTE, &count), MPI_SUCCESS);
    CHECK_EQ(count, elements * size);
    MPI_Test_cancelled(&status, &flag);
    CHECK_EQ(flag, wanted);
    int narrow;
    MPI_Get_count(&status, datatype, &narrow);
    CHECK_EQ(narrow, elements > 0x7fffffff ? MPI_UNDEFINED : (int)elements);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    long long largest = 0x7fffffffffffffff;
    for (int bit = 0; bit < 63; bit++) {
        keeps(1LL << bit, MPI_BYTE, 1);
        keeps((1LL << bit) - 1, MPI_BYTE, 1);
    }
    keeps(largest, MPI_BYTE, 1);
    keeps(largest / 8, MPI_DOUBLE, 8);
    keeps(1LL << 59, MPI_DOUBLE, 8);
    return finish();
}
