/* A blocking wavefront as in the LU benchmark (PEF fig. 4): each rank receives a row from the rank
   before, computes, and sends one to the next. All messages are blocking, so that progress
   mechanisms can only cost. */
#include "pair.h"
enum { ROUNDS = 9, ROWS = 60 };

int main(int argc, char **argv) {
    int size;
    begin(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < LENGTHS - 1; i++) {
        double times[ROUNDS]; // milliseconds
        for (int round = 0; round < ROUNDS; round++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double start = now_us();
            for (int row = 0; row < ROWS; row++) {
                if (rank > 0) MPI_Recv(buffer, lengths[i], MPI_BYTE, rank - 1, row, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                compute_us(20);
                if (rank < size - 1) MPI_Send(buffer, lengths[i], MPI_BYTE, rank + 1, row, MPI_COMM_WORLD);
            }
            MPI_Barrier(MPI_COMM_WORLD);
            times[round] = (now_us() - start) / 1000;
        }
        if (rank == 0) show("wavefront", lengths[i] >> 10, spread_of(times, ROUNDS));
    }
    return MPI_Finalize();
}
