// A handle that MPI has never given is said to be one.
//# ranks: 1
//# abi: mpich
//# exit: 5
//# stderr: MPI_Comm_size failed: MPI_ERR_COMM: invalid communicator: the handle is none that MPI has given
#include "check.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int value;
    CHECK_EQ(class_of(MPI_Comm_rank((MPI_Comm)0x12345678, &value)), MPI_ERR_COMM);
    CHECK_EQ(class_of(MPI_Type_size((MPI_Datatype)0x12345678, &value)), MPI_ERR_TYPE);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_size((MPI_Comm)0x12345678, &value);
    return 0;
}
