// Processes that take the places of others, one after the other, and compute while a long message comes.
//# ranks: 1
//# abi: mpi5, mpich
//# progress: signal, auto, helper, steal
//# settings: COHORT_SIGNAL_FROM=timer
//# nodes: no
// In jobs of several nodes places are not used again.
#include "check.h"
#include <time.h>

enum { WORLDS = 5, BYTES = 1 << 20 };

static char data[BYTES];

/* Neither calls MPI nor sleeps. */
static void compute(double seconds) {
    volatile double sink = 0;
    for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end;) {
        for (int i = 0; i < 1000; i++) sink += i;
    }
}

static int child(MPI_Comm parent) {
    MPI_Request request;
    MPI_Irecv(data, BYTES, MPI_CHAR, 0, 1, parent, &request);
    int ready = 1;
    MPI_Send(&ready, 1, MPI_INT, 0, 2, parent);
    compute(0.1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < BYTES; i++) CHECK_EQ(data[i], (char)(i % 101));
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    return 0;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm parent, inter;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) return child(parent);
    for (int i = 0; i < BYTES; i++) data[i] = (char)(i % 101);
    for (int world = 0; world < WORLDS; world++) {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE);
        int ready = 0;
        MPI_Recv(&ready, 1, MPI_INT, 0, 2, inter, MPI_STATUS_IGNORE);
        CHECK_EQ(ready, 1);
        compute(0.02);
        MPI_Send(data, BYTES, MPI_CHAR, 0, 1, inter);
        MPI_Comm_disconnect(&inter);
    }
    return finish();
}
