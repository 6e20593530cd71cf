// What a rank has sent before it dies is received, also by who waits for it then.
//# ranks: 4
//# abi: mpi5
//# progress: none
//# policies: listed
//# wait: auto, park
// Ranks that survive each other do no work for others.
//# nodes: no
// Between nodes what is on its way when a rank dies may be lost.
//# settings: COHORT_ON_FAILURE=continue
//# stderr: killed by signal 9 (SIGKILL)
#include "check.h"
#include "survival.h"
#include <signal.h>
enum { LENGTH = 2000, TIMES = 3 };

int main(int argc, char **argv) {
    static char data[LENGTH];
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank > 0) {
        memset(data, rank, LENGTH);
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int tag = 1; tag <= TIMES; tag++) MPI_Send(data, LENGTH >> 2 * tag, MPI_CHAR, 0, tag, MPI_COMM_WORLD);
        raise(SIGKILL);
    }
    for (int from = 1; from < size; from++) {
        MPI_Send(NULL, 0, MPI_INT, from, 0, MPI_COMM_WORLD);
        for (int tag = TIMES; tag > 0; tag--) {
            CHECK_EQ(MPI_Recv(data, LENGTH, MPI_CHAR, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_SUCCESS);
            CHECK_EQ(data[(LENGTH >> 2 * tag) - 1], from);
        }
        int code = MPI_Recv(data, 1, MPI_CHAR, from, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQ(class_of(code), MPIX_ERR_PROC_FAILED);
    }
    puts("passed");
    MPI_Finalize();
    return 0;
}
