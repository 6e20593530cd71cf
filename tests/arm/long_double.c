// Reductions of `long double`, whose format differs between architectures.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    // Thirds have no end in binary digits, so digits that are lost show.
    long double third = 1.0L / 3.0L, mine[100], sum[100], product[100], most[100];
    for (int i = 0; i < 100; i++) mine[i] = (rank + 1 + i) * third;
    MPI_Allreduce(mine, sum, 100, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(mine, product, 100, MPI_LONG_DOUBLE, MPI_PROD, MPI_COMM_WORLD);
    MPI_Allreduce(mine, most, 100, MPI_LONG_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    int wrong = 0;
    for (int i = 0; i < 100; i++) {
        long double adds = (1 + i) * third, multiplies = (1 + i) * third;
        for (int other = 1; other < size; other++) {
            adds += (other + 1 + i) * third;
            multiplies *= (other + 1 + i) * third;
        }
        wrong += sum[i] != adds || product[i] != multiplies || most[i] != (size + i) * third;
    }
    if (wrong) MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank == 0) printf("all the same\n");
    MPI_Finalize();
    return 0;
}
