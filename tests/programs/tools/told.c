/* An operation on /dev/full fails, and the file's error handler ends the job: told FORM. */
#include <mpi.h>
#include <string.h>

enum { MANY = 1 << 20, FEW = 100 };

static char data[MANY];

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_File file;
    MPI_Status status;
    MPI_Request requests[2];
    MPI_File_open(MPI_COMM_WORLD, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
    const char *form = argv[1];
    int is_last = rank == size - 1, found;
    if (!strcmp(form, "write_at") && is_last) MPI_File_write_at(file, 4096, data, MANY, MPI_BYTE, &status);
    if (!strcmp(form, "iwrite_at") && is_last) {
        MPI_File_iwrite_at(file, 4096, data, MANY, MPI_BYTE, &requests[0]);
        MPI_Wait(&requests[0], &status);
    }
    if (!strcmp(form, "iwrite_at of little") && is_last) {
        MPI_File_iwrite_at(file, 4096, data, FEW, MPI_BYTE, &requests[0]);
        MPI_Wait(&requests[0], &status);
    }
    if (!strcmp(form, "two at once") && is_last) {
        MPI_File_iwrite_at(file, 4096, data, MANY, MPI_BYTE, &requests[0]);
        MPI_File_iwrite_at(file, 8192, data, FEW, MPI_BYTE, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    // One member's failure is everybody's.
    if (!strcmp(form, "iwrite_all")) {
        MPI_File_iwrite_all(file, data, is_last ? MANY : 0, MPI_BYTE, &requests[0]);
        if (is_last) MPI_Barrier(MPI_COMM_SELF);
        if (rank == 0) MPI_Wait(&requests[0], &status);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (!strcmp(form, "tested")) {
        MPI_File_iwrite_at_all(file, rank == 0 ? -5 : 0, data, FEW, MPI_BYTE, &requests[0]);
        if (rank == 0)
            for (found = 0; !found;) MPI_Test(&requests[0], &found, &status);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (!strcmp(form, "split")) {
        MPI_File_write_all_begin(file, data, is_last ? MANY : 0, MPI_BYTE);
        if (rank == 0) MPI_File_write_all_end(file, data, &status);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    // All wait until one has ended the job.
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}
