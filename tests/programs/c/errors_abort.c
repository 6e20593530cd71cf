// MPI_ERRORS_ABORT ends the processes of the communicator and no others (MPI 4.1 9.3), whatever they
// wait for; the others go on and finalise. The job's exit code tells that some ended.
//# ranks: 4 5
//# progress: steal, none, thread
//# wait: auto, spin
//# exit: 6
//# stdout: the others passed
//# stderr: MPI_Send failed on the doomed: MPI_ERR_RANK
// Between nodes the whole job ends, as MPI_Abort may do.
//# nodes: no
#include "check.h"

int main(int argc, char **argv) {
    MPI_Comm part;
    int data = 0, members, me;
    start(&argc, &argv);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
    MPI_Comm_rank(part, &me);
    MPI_Comm_size(part, &members);
    if (rank % 2) {
        MPI_Comm_set_name(part, "the doomed");
        MPI_Comm_set_errhandler(part, MPI_ERRORS_ABORT);
        if (me == members - 1) {
            MPI_Send(&data, 1, MPI_INT, members, 0, part);
        } else {
            MPI_Recv(&data, 1, MPI_INT, members - 1, 0, part, MPI_STATUS_IGNORE);
        }
        puts("a doomed rank went on");
        MPI_Abort(MPI_COMM_WORLD, 99);
    }
    for (int i = 0; i < 20; i++) {
        MPI_Allreduce(MPI_IN_PLACE, &data, 1, MPI_INT, MPI_MAX, part);
    }
    if (rank == 0) puts("the others passed");
    MPI_Finalize();
    return 0;
}
