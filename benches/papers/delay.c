/* Progression (SmartInterrupts fig. 7, PEF fig. 3a and b): time from the posting of a receive to
   the end of its wait, less the computation in between, which lasts 2 to 3.5 times the latency
   without any. With progress it is near 0; without, it is the time of the transfer. */
#include "pair.h"
enum { ROUNDS = 60 };

int main(int argc, char **argv) {
    begin_pair(&argc, &argv);
    for (int length = 64 << 10; length <= LONGEST; length <<= 4) {
        double plain = late_messages(length, 0, 0, ROUNDS).median;
        for (int factor = 4; factor <= 7; factor++) {
            double computation = plain * factor / 2;
            struct spread left = late_messages(length, computation, 1, ROUNDS);
            char series[32];
            snprintf(series, sizeof series, "%d-KiB", length >> 10);
            if (rank == 0) show(series, factor / 2.0, left);
        }
    }
    return end_pair();
}
