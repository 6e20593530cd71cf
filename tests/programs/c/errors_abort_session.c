// MPI_ERRORS_ABORT on a session ends the calling process and no other (MPI 4.1 9.3).
//# ranks: 3
//# progress: steal, none
//# exit: 13
//# stdout: the others passed
//# stderr: MPI_Group_from_session_pset failed on a session: MPI_ERR_ARG
// Between nodes the whole job ends, as MPI_Abort may do.
//# nodes: no
#include "check.h"

int main(int argc, char **argv) {
    MPI_Comm others;
    MPI_Session session;
    MPI_Group group;
    int data = 0;
    start(&argc, &argv);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 1, rank, &others);
    CHECK_EQ(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ABORT, &session), MPI_SUCCESS);
    if (rank == 1) {
        MPI_Group_from_session_pset(session, "nobody://is/called/so", &group);
        puts("a doomed rank went on");
        MPI_Abort(MPI_COMM_WORLD, 99);
    }
    for (int i = 0; i < 20; i++) {
        MPI_Allreduce(MPI_IN_PLACE, &data, 1, MPI_INT, MPI_MAX, others);
    }
    MPI_Session_finalize(&session);
    if (rank == 0) puts("the others passed");
    MPI_Finalize();
    return 0;
}
