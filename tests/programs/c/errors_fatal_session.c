// MPI_ERRORS_ARE_FATAL, the default of a session, ends all connected processes (MPI 4.1 9.3).
//# ranks: 3
//# exit: 13
//# stderr: MPI_Group_from_session_pset failed on a session: MPI_ERR_ARG
//# stderr: MPI_ERRORS_ARE_FATAL
#include "check.h"

int main(int argc, char **argv) {
    MPI_Session session;
    MPI_Group group;
    start(&argc, &argv);
    CHECK_EQ(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session), MPI_SUCCESS);
    if (rank == 1) MPI_Group_from_session_pset(session, "nobody://is/called/so", &group);
    MPI_Barrier(MPI_COMM_WORLD);
    puts("a rank went on");
    return 0;
}
