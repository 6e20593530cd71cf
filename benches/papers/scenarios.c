/* Receiver-side latency in the three scenarios of PEF (fig. 2), the third of which is also SmartInterrupts'
   latency overhead (fig. 5): blocking receives; a receive that finds its message; one that is earlier. */
#include "pair.h"
enum { ROUNDS = 100 };

static double blocking(int length) {
    double start = now_us();
    if (rank == 0) MPI_Recv(buffer, length, MPI_BYTE, 1, 0, pair, MPI_STATUS_IGNORE);
    else MPI_Send(buffer, length, MPI_BYTE, 0, 0, pair);
    return now_us() - start;
}

static double sender_first(int length) {
    MPI_Request request;
    double start;
    if (rank == 1) {
        MPI_Isend(buffer, length, MPI_BYTE, 0, 0, pair, &request);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 1, pair);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, pair, MPI_STATUS_IGNORE);
    }
    start = now_us();
    if (rank == 0) MPI_Irecv(buffer, length, MPI_BYTE, 1, 0, pair, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return now_us() - start;
}

static double receiver_first(int length) { return late_message(length, 0, 0); }

int main(int argc, char **argv) {
    const char *names[] = {"blocking", "sender-first", "receiver-first"};
    double (*scenarios[])(int) = {blocking, sender_first, receiver_first};
    begin_pair(&argc, &argv);
    for (int s = 0; s < 3; s++) {
        for (int i = 0; i < LENGTHS; i++) {
            double times[ROUNDS];
            for (int round = -5; round < ROUNDS; round++) {
                MPI_Barrier(pair);
                double time = scenarios[s](lengths[i]);
                if (round >= 0) times[round] = time;
            }
            if (rank == 0) show(names[s], lengths[i] >> 10, spread_of(times, ROUNDS));
        }
    }
    return end_pair();
}
