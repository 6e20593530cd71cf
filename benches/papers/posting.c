/* Cost of posting and of waiting (CasperII fig. 3): time of MPI_Irecv, MPI_Isend, and of an MPI_Wait after a
   computation that is long enough for the message. */
#include "pair.h"
enum { ROUNDS = 100 };

int main(int argc, char **argv) {
    begin_pair(&argc, &argv);
    for (int i = 0; i < LENGTHS; i++) {
        double post[ROUNDS], wait[ROUNDS], enough = 3 * late_messages(lengths[i], 0, 0, 40).median + 50;
        for (int round = 0; round < ROUNDS; round++) {
            MPI_Request request;
            MPI_Barrier(pair);
            double start = now_us();
            if (rank == 0) MPI_Irecv(buffer, lengths[i], MPI_BYTE, 1, 0, pair, &request);
            else MPI_Isend(buffer, lengths[i], MPI_BYTE, 0, 0, pair, &request);
            post[round] = now_us() - start;
            if (rank == 0) compute_us(enough);
            start = now_us();
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            wait[round] = now_us() - start;
        }
        struct spread posted = spread_of(post, ROUNDS), waited = spread_of(wait, ROUNDS);
        if (rank == 1) MPI_Send(&posted, 3, MPI_DOUBLE, 0, 2, pair);
        if (rank == 0) {
            struct spread sent;
            MPI_Recv(&sent, 3, MPI_DOUBLE, 1, 2, pair, MPI_STATUS_IGNORE);
            show("MPI_Irecv", lengths[i] >> 10, posted);
            show("MPI_Isend", lengths[i] >> 10, sent);
            show("MPI_Wait", lengths[i] >> 10, waited);
        }
    }
    return end_pair();
}
