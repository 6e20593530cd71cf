// Files in external32 have the bytes that the standard says, in views of types that are shorter there, and come back.
//# ranks: 2
//# abi: mpich mpi5 openmpi
//# stdout: passed
#include "check.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char name[64];

static const unsigned char wanted[] = {
    0, 0, 0, 1,             // rank 0's first long
    0xff, 0xff, 0xff, 0xfe, // rank 1's
    0, 0, 0, 2,             // rank 0's second
    0xff, 0xff, 0xff, 0xfd, // rank 1's
};

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK_EQ(chdir("/dev/shm"), 0);
    if (rank == 0) snprintf(name, sizeof name, "files-external32-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_File file;
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), MPI_SUCCESS);
    MPI_Datatype turns;
    int sizes[2] = {2, 2}, lengths[2] = {2, 1}, starts[2] = {0, 0};
    MPI_Type_create_subarray(2, sizes, lengths, starts, MPI_ORDER_C, MPI_LONG, &turns);
    MPI_Type_commit(&turns);
    MPI_Aint extent;
    CHECK_EQ(MPI_File_set_view(file, rank * 4, MPI_LONG, turns, "external32", MPI_INFO_NULL), MPI_SUCCESS);
    CHECK_EQ(MPI_File_get_type_extent(file, MPI_LONG, &extent), MPI_SUCCESS);
    CHECK_EQ(extent, 4);
    CHECK_EQ(MPI_File_get_type_extent(file, turns, &extent), MPI_SUCCESS);
    CHECK_EQ(extent, 16);
    MPI_Offset displacement;
    MPI_Datatype etype, filetype;
    char representation[MPI_MAX_DATAREP_STRING];
    CHECK_EQ(MPI_File_get_view(file, &displacement, &etype, &filetype, representation), MPI_SUCCESS);
    CHECK_EQ(strcmp(representation, "external32"), 0);
    CHECK_EQ(etype == MPI_LONG, 1);
    MPI_Type_free(&filetype);

    long out[2] = {rank ? -2 : 1, rank ? -3 : 2}, in[4] = {7, 7, 7, 7};
    MPI_Status status;
    int count;
    CHECK_EQ(MPI_File_write_all(file, out, 2, MPI_LONG, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_LONG, &count);
    CHECK_EQ(count, 2);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    unsigned char bytes[sizeof wanted + 1];
    int descriptor = open(name, O_RDONLY);
    CHECK_EQ(read(descriptor, bytes, sizeof bytes), (ssize_t)sizeof wanted);
    close(descriptor);
    CHECK_EQ(memcmp(bytes, wanted, sizeof wanted), 0);

    // More than there is: the status counts what is.
    CHECK_EQ(MPI_File_read_at(file, 1, in, 3, MPI_LONG, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_LONG, &count);
    CHECK_EQ(count, 1);
    CHECK_EQ(in[0], out[1]);
    CHECK_EQ(in[1], 7);

    // A value that four bytes do not hold is refused, and the file stays as it is.
    long far = 1L << 40;
    CHECK_EQ(class_of(MPI_File_write_at(file, 0, &far, 1, MPI_LONG, &status)), MPI_ERR_CONVERSION);
    CHECK_EQ(MPI_File_read_at_all(file, 0, in, 2, MPI_LONG, &status), MPI_SUCCESS);
    CHECK_EQ(memcmp(in, out, sizeof out), 0);

    int code = MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "martian", MPI_INFO_NULL);
    CHECK_EQ(class_of(code), MPI_ERR_UNSUPPORTED_DATAREP);
    MPI_Type_free(&turns);
    MPI_File_close(&file);
    return finish();
}
