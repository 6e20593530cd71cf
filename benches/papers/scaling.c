/* Pairs of ranks that one dedicated worker serves (SmartInterrupts fig. 8): time beyond a
   computation of 300 us, by the number of ranks. Ranks sleep instead of computing, since they
   outnumber the CPUs; how long they slept does not count. */
#include "pair.h"
enum { ROUNDS = 60, LENGTH = 256 << 10, COMPUTATION_US = 300 };

int main(int argc, char **argv) {
    double times[ROUNDS];
    struct spread mine, worst;
    int size;
    setenv("PAPERS_COMPUTE", "sleep", 1);
    begin(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now_us();
        if (rank % 2 == 0) MPI_Irecv(buffer, LENGTH, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD, &request);
        else MPI_Isend(buffer, LENGTH, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, &request);
        double slept = compute_us(COMPUTATION_US);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        times[round] = now_us() - start - slept;
    }
    mine = spread_of(times, ROUNDS);
    MPI_Reduce(&mine, &worst, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) show("left", size, worst);
    return MPI_Finalize();
}
