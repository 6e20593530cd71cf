/* Distribution of the overlap (CasperII figs. 5 and 6): of many late messages with enough
   computation, which part of the latency without any was hidden, by percentile. */
#include "pair.h"
enum { ROUNDS = 200, LENGTH = 256 << 10 };

int main(int argc, char **argv) {
    double hidden[ROUNDS];
    begin_pair(&argc, &argv);
    double plain = late_messages(LENGTH, 0, 0, 60).median, computation = 3 * plain + 50;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(pair);
        double left = late_message(LENGTH, computation, 1);
        double part = 100 * (1 - left / plain);
        hidden[round] = part < 0 ? 0 : part > 100 ? 100 : part;
    }
    qsort(hidden, ROUNDS, sizeof *hidden, compare);
    for (int percent = 10; percent <= 90; percent += 10)
        if (rank == 0) printf("overlap-%d-KiB %d %.1f\n", LENGTH >> 10, percent, hidden[ROUNDS * percent / 100]);
    return end_pair();
}
