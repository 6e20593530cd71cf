// NULL where a function must give something back is refused with the argument's name.
//# ranks: 1
//# exit: 13
//# stderr: MPI_Comm_dup failed on MPI_COMM_WORLD: MPI_ERR_ARG: invalid argument
//# stderr: : newcomm is NULL
#include "check.h"

int main(int argc, char **argv) {
    int data = 0;
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_EQ(class_of(MPI_Irecv(&data, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, NULL)), MPI_ERR_ARG);
    CHECK_EQ(class_of(MPI_Comm_rank(MPI_COMM_WORLD, NULL)), MPI_ERR_ARG);
    CHECK_EQ(class_of(MPI_Type_contiguous(1, MPI_INT, NULL)), MPI_ERR_ARG);
    CHECK_EQ(class_of(MPI_Test(NULL, &data, MPI_STATUS_IGNORE)), MPI_ERR_ARG);
    CHECK_EQ(class_of(MPI_Info_create(NULL)), MPI_ERR_ARG);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_dup(MPI_COMM_WORLD, NULL);
    return 0;
}
