// Blocking sends of short messages in another order than the receives: programs rely on buffers for them (MPI-4.1,
// 3.5), between nodes too, as long as hardly anything is stored.
//# ranks: 2 4
//# progress: steal, none
//# timeout: 60
#include "check.h"

enum { TAGS = 20, ROUNDS = 300, LONGEST = 4000 };

static int length(int tag, int round) { return (131 + tag * 977 + round * 53) % (LONGEST + 1) / 8 * 8; }

int main(int argc, char **argv) {
    start(&argc, &argv);
    static unsigned char data[LONGEST];
    int half = size / 2;
    for (int round = 0; round < ROUNDS; round++) {
        for (int place = 0; place < TAGS; place++) {
            int tag = rank < half ? TAGS - 1 - place : place;
            int bytes = length(tag, round);
            if (rank < half) {
                memset(data, tag + round, bytes);
                MPI_Send(data, bytes, MPI_BYTE, rank + half, tag, MPI_COMM_WORLD);
                continue;
            }
            MPI_Status status;
            int came;
            MPI_Recv(data, LONGEST, MPI_BYTE, rank - half, tag, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_BYTE, &came);
            CHECK(came == bytes);
            for (int at = 0; at < bytes; at++) CHECK(data[at] == (unsigned char)(tag + round));
        }
    }
    return finish();
}
