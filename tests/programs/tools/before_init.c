// Meets the others without an argument, with `end` only in MPI_Finalize. With `sessions` it ends after a session of its
// own, with another argument before it has used MPI.
#include <mpi.h>
#include <string.h>

static void session(void) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://SELF", &group);
    MPI_Comm_create_from_group(group, "one", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "sessions") == 0) session();
    if (argc > 1 && strcmp(argv[1], "end") != 0) return 0;
    MPI_Init(NULL, NULL);
    if (argc == 1) MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Finalize();
}
