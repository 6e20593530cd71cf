/* Overlap of computation and communication at the receiver (SmartInterrupts fig. 6, PEF fig. 3c). The computation
   between posting and waiting grows from 0 to the latency without any; the overlap is the longest one that
   lengthens the whole by no more than a tenth, as part of that latency. */
#include "pair.h"
enum { ROUNDS = 40, STEPS = 10 };

int main(int argc, char **argv) {
    begin_pair(&argc, &argv);
    for (int i = 0; i < LENGTHS; i++) {
        double plain = late_messages(lengths[i], 0, 0, ROUNDS).median, hidden = 0;
        for (int step = 1; step <= STEPS; step++) {
            double computation = plain * step / STEPS;
            double latency = late_messages(lengths[i], computation, 0, ROUNDS).median;
            if (latency <= 1.1 * plain) hidden = computation;
        }
        if (rank == 0) printf("overlap %d %.1f\n", lengths[i] >> 10, 100 * hidden / plain);
    }
    return end_pair();
}
