// Functions of files, which there are none of yet, return an error under the default error handler of files and say so
// once; the program goes on.
//# ranks: 2
//# abi: mpich mpi5 openmpi
//# stderr: MPI_File_open is not implemented
//# stdout: passed
#include "check.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_File file = MPI_FILE_NULL;
    int code = MPI_File_open(MPI_COMM_WORLD, "/none/x", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    CHECK_EQ(class_of(code), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(MPI_File_write_at_all(file, 0, &rank, 1, MPI_INT, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    CHECK(MPI_File_delete("/none/x", MPI_INFO_NULL) != MPI_SUCCESS);
    CHECK(MPI_File_close(&file) != MPI_SUCCESS);
    return finish();
}
