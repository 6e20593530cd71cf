/* Pairs of ranks that one dedicated worker serves (SmartInterrupts fig. 8): time left after a
   computation of 300 us, by the number of ranks. Ranks sleep instead of computing, since they
   outnumber the CPUs. */
#include "pair.h"
enum { ROUNDS = 60, LENGTH = 256 << 10, COMPUTATION_US = 300 };

int main(int argc, char **argv) {
    double times[ROUNDS], worst, middle;
    int size;
    begin(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        struct timespec pause = {0, COMPUTATION_US * 1000};
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now_us();
        if (rank % 2 == 0) MPI_Irecv(buffer, LENGTH, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD, &request);
        else MPI_Isend(buffer, LENGTH, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, &request);
        nanosleep(&pause, NULL);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        times[round] = now_us() - start - COMPUTATION_US;
    }
    middle = median(times, ROUNDS);
    MPI_Reduce(&middle, &worst, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("left %d %.1f\n", size, worst);
    return MPI_Finalize();
}
