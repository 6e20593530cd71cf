/* A session, and a communicator of all processes of the job. */
#ifndef SESSION_H
#define SESSION_H
#include "check.h"

/* Sets rank and size. */
static MPI_Comm begin_session(MPI_Session *session) {
    MPI_Group group;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session);
    MPI_Group_from_session_pset(*session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    return comm;
}

#endif
