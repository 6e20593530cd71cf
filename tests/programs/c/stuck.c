// For the fault tests: `wait` waits for a message that never comes, `crash` lets rank 1 write
// to address 64; without an argument it ends well.
//# ranks: 2
#include "check.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    const char *what = argc > 1 ? argv[1] : "";
    volatile size_t nowhere = 64;
    if (strcmp(what, "crash") == 0 && rank == 1) *(volatile int *)nowhere = 1;
    if (*what) {
        int never;
        MPI_Recv(&never, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return finish();
}
