/* Messages per second (CasperII fig. 4): windows of posts, then one wait for all. */
#include "pair.h"
enum { ROUNDS = 40, WINDOW = 32 };

int main(int argc, char **argv) {
    MPI_Request requests[WINDOW];
    begin_pair(&argc, &argv);
    for (int i = 0; i < LENGTHS - 1; i++) {
        double rates[ROUNDS];
        for (int round = 0; round < ROUNDS; round++) {
            MPI_Barrier(pair);
            double start = now_us();
            for (int m = 0; m < WINDOW; m++) {
                if (rank == 0) MPI_Irecv(buffer, lengths[i], MPI_BYTE, 1, m, pair, &requests[m]);
                else MPI_Isend(buffer, lengths[i], MPI_BYTE, 0, m, pair, &requests[m]);
            }
            MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
            rates[round] = WINDOW / (now_us() - start);
        }
        if (rank == 0) show("rate", lengths[i] >> 10, spread_of(rates, ROUNDS));
    }
    return end_pair();
}
