// Messages of one pair and communicator match in the order they were sent, whatever their
// size and whether the receive or the message came first.
//# ranks: 2
//# progress: all
#include "check.h"
enum { MESSAGES = 400, LARGEST = 100000 };

static int length_of(int i) { return i % 7 == 0 ? LARGEST : 1 + i % 50; }

int main(int argc, char **argv) {
    start(&argc, &argv);
    static int out[MESSAGES][64], in[LARGEST];
    int *large = malloc(LARGEST * sizeof *large);
    MPI_Request requests[MESSAGES];
    for (int i = 0; i < LARGEST; i++) large[i] = i;
    if (rank == 0) {
        for (int i = 0; i < MESSAGES; i++) {
            int *from = length_of(i) == LARGEST ? large : out[i];
            if (from != large) from[0] = i;
            MPI_Isend(from, length_of(i), MPI_INT, 1, i % 3, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    } else if (rank == 1) {
        for (int tag = 2; tag >= 0; tag--) {
            for (int i = tag; i < MESSAGES; i += 3) {
                MPI_Status status;
                int count;
                in[0] = -1;
                MPI_Recv(in, LARGEST, MPI_INT, 0, tag, MPI_COMM_WORLD, &status);
                MPI_Get_count(&status, MPI_INT, &count);
                CHECK_EQ(count, length_of(i));
                if (count != LARGEST) CHECK_EQ(in[0], i);
                else CHECK(memcmp(in, large, LARGEST * sizeof *large) == 0);
            }
        }
    }
    free(large);
    return finish();
}
