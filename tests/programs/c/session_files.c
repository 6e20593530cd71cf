// MPI_Finalize does not wait for what sessions do: an operation on the file of a session goes on, which another member
// begins after its MPI_Finalize only.
//# ranks: 2
//# abi: mpich mpi5
//# progress: steal none
#include "session.h"
#include <unistd.h>

int main(int argc, char **argv) {
    MPI_Session session;
    MPI_File file;
    MPI_Request request;
    char name[64];
    int out, in[2] = {-1, -1};
    start(&argc, &argv);
    MPI_Comm comm = begin_session(&session);
    if (rank == 0) snprintf(name, sizeof name, "session-files-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, comm);
    CHECK_EQ(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_SUCCESS);
    CHECK_EQ(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_SUCCESS);
    out = 10 + rank;
    if (rank == 1) MPI_Finalize();
    CHECK_EQ(MPI_File_iwrite_at_all(file, rank, &out, 1, MPI_INT, &request), MPI_SUCCESS);
    if (rank == 0) MPI_Finalize();
    CHECK_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK_EQ(MPI_File_read_at_all(file, 0, in, 2, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK_EQ(in[rank], 10 + rank);
    MPI_Barrier(comm);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    if (rank == 0) unlink(name);
    MPI_Comm_disconnect(&comm);
    MPI_Session_finalize(&session);
    if (rank == 0) puts("passed");
    return 0;
}
