// Every form of reading and writing moves the bytes that the standard says, and its status counts them.
//# ranks: 1 3
//# abi: mpich mpi5 openmpi
//# stdout: passed
#include "check.h"
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

enum { COUNT = 1000 };

static char name[64];
static MPI_File file;
static int out[COUNT], in[COUNT];

static void fill(int seed) {
    for (int index = 0; index < COUNT; index++) {
        out[index] = seed * COUNT + index;
        in[index] = -1;
    }
}

/* So many of the numbers that a rank wrote with this seed have been read, and no more. */
static void check_in(const MPI_Status *status, int seed, int count) {
    int found;
    MPI_Get_count(status, MPI_INT, &found);
    CHECK_EQ(found, count);
    for (int index = 0; index < COUNT; index++)
        CHECK_EQ(in[index], index < count ? seed * COUNT + index : -1);
}

static void check_out(const MPI_Status *status) {
    int found;
    MPI_Get_count(status, MPI_INT, &found);
    CHECK_EQ(found, COUNT);
}

static void settle(void) {
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
}

static MPI_Offset position(void) {
    MPI_Offset at = -1;
    CHECK_EQ(MPI_File_get_position(file, &at), MPI_SUCCESS);
    return at;
}

static void offsets(void) {
    MPI_Status status;
    MPI_Request request;
    int peer = (rank + 1) % size;
    fill(rank);
    CHECK_EQ(MPI_File_write_at(file, (MPI_Offset)rank * COUNT, out, COUNT, MPI_INT, &status), MPI_SUCCESS);
    check_out(&status);
    settle();
    CHECK_EQ(MPI_File_read_at(file, (MPI_Offset)peer * COUNT, in, COUNT, MPI_INT, &status), MPI_SUCCESS);
    check_in(&status, peer, COUNT);
    // The end of the file.
    fill(rank);
    CHECK_EQ(MPI_File_read_at(file, (MPI_Offset)size * COUNT - 10, in, COUNT, MPI_INT, &status), MPI_SUCCESS);
    int found;
    MPI_Get_count(&status, MPI_INT, &found);
    CHECK_EQ(found, 10);
    CHECK_EQ(in[10], -1);
    CHECK_EQ(MPI_File_read_at(file, (MPI_Offset)size * COUNT, in, COUNT, MPI_INT, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_INT, &found);
    CHECK_EQ(found, 0);
    settle();
    // All together.
    fill(rank + 10);
    CHECK_EQ(MPI_File_write_at_all(file, (MPI_Offset)rank * COUNT, out, COUNT, MPI_INT, &status), MPI_SUCCESS);
    check_out(&status);
    settle();
    CHECK_EQ(MPI_File_read_at_all(file, (MPI_Offset)peer * COUNT, in, COUNT, MPI_INT, &status), MPI_SUCCESS);
    check_in(&status, peer + 10, COUNT);
    settle();
    // With a request.
    fill(rank + 20);
    CHECK_EQ(MPI_File_iwrite_at(file, (MPI_Offset)rank * COUNT, out, COUNT, MPI_INT, &request), MPI_SUCCESS);
    CHECK_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
    check_out(&status);
    CHECK(request == MPI_REQUEST_NULL);
    settle();
    CHECK_EQ(MPI_File_iread_at_all(file, (MPI_Offset)peer * COUNT, in, COUNT, MPI_INT, &request), MPI_SUCCESS);
    CHECK_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
    check_in(&status, peer + 20, COUNT);
    settle();
    // Split.
    fill(rank + 30);
    CHECK_EQ(MPI_File_write_at_all_begin(file, (MPI_Offset)rank * COUNT, out, COUNT, MPI_INT), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_File_write_all_end(file, out, &status)), MPI_ERR_OTHER);
    CHECK_EQ(class_of(MPI_File_write_all(file, out, COUNT, MPI_INT, &status)), MPI_ERR_OTHER);
    CHECK_EQ(MPI_File_write_at_all_end(file, out, &status), MPI_SUCCESS);
    check_out(&status);
    CHECK_EQ(class_of(MPI_File_write_at_all_end(file, out, &status)), MPI_ERR_OTHER);
    settle();
    CHECK_EQ(MPI_File_read_at_all_begin(file, (MPI_Offset)peer * COUNT, in, COUNT, MPI_INT), MPI_SUCCESS);
    CHECK_EQ(MPI_File_read_at_all_end(file, in, &status), MPI_SUCCESS);
    check_in(&status, peer + 30, COUNT);
    settle();
    CHECK_EQ(class_of(MPI_File_write_at(file, -1, out, COUNT, MPI_INT, &status)), MPI_ERR_ARG);
    CHECK_EQ(class_of(MPI_File_write_at(file, 0, out, 2, MPI_BYTE, &status)), MPI_ERR_TYPE);
    // Wrong arguments of one member are the failure of all, and nobody waits for ever.
    if (size > 1) {
        int code = MPI_File_write_at_all(file, rank == 1 ? -1 : 0, out, 0, MPI_INT, &status);
        CHECK_EQ(class_of(code), MPI_ERR_ARG);
        code = MPI_File_write_at_all(file, 0, out, rank == 1 ? -1 : 0, MPI_INT, &status);
        CHECK_EQ(class_of(code), MPI_ERR_COUNT);
    }
}

static void own_pointer(void) {
    MPI_Status status;
    MPI_Request request;
    fill(rank);
    CHECK_EQ(MPI_File_seek(file, (MPI_Offset)rank * 3 * COUNT, MPI_SEEK_SET), MPI_SUCCESS);
    CHECK_EQ(MPI_File_write(file, out, COUNT, MPI_INT, &status), MPI_SUCCESS);
    check_out(&status);
    CHECK_EQ(position(), (rank * 3 + 1) * COUNT);
    CHECK_EQ(MPI_File_write_all(file, out, COUNT, MPI_INT, &status), MPI_SUCCESS);
    CHECK_EQ(MPI_File_iwrite(file, out, COUNT, MPI_INT, &request), MPI_SUCCESS);
    CHECK_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
    CHECK_EQ(position(), (rank * 3 + 3) * COUNT);
    CHECK_EQ(MPI_File_seek(file, -3 * COUNT, MPI_SEEK_CUR), MPI_SUCCESS);
    CHECK_EQ(MPI_File_read(file, in, COUNT, MPI_INT, &status), MPI_SUCCESS);
    check_in(&status, rank, COUNT);
    fill(rank);
    CHECK_EQ(MPI_File_read_all(file, in, COUNT / 2, MPI_INT, &status), MPI_SUCCESS);
    check_in(&status, rank, COUNT / 2);
    CHECK_EQ(position(), rank * 3 * COUNT + 3 * COUNT / 2);
    CHECK_EQ(MPI_File_read_all_begin(file, in, 0, MPI_INT), MPI_SUCCESS);
    CHECK_EQ(MPI_File_read_all_end(file, in, &status), MPI_SUCCESS);
    settle();
    CHECK_EQ(MPI_File_seek(file, -5, MPI_SEEK_END), MPI_SUCCESS);
    CHECK_EQ(position(), (MPI_Offset)size * 3 * COUNT - 5);
    CHECK_EQ(class_of(MPI_File_seek(file, -1, MPI_SEEK_SET)), MPI_ERR_ARG);
    CHECK_EQ(position(), (MPI_Offset)size * 3 * COUNT - 5);
    MPI_Offset bytes = -1;
    CHECK_EQ(MPI_File_get_byte_offset(file, 7, &bytes), MPI_SUCCESS);
    CHECK_EQ(bytes, 7 * sizeof(int));
    settle();
}

static void shared_pointer(void) {
    MPI_Status status;
    MPI_Request request;
    MPI_Offset at = -1;
    static char seen[3];
    CHECK_EQ(MPI_File_set_size(file, 0), MPI_SUCCESS);
    CHECK_EQ(MPI_File_seek_shared(file, 0, MPI_SEEK_SET), MPI_SUCCESS);
    fill(rank);
    CHECK_EQ(MPI_File_write_shared(file, out, COUNT, MPI_INT, &status), MPI_SUCCESS);
    check_out(&status);
    settle();
    CHECK_EQ(MPI_File_get_position_shared(file, &at), MPI_SUCCESS);
    CHECK_EQ(at, size * COUNT);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_seek_shared(file, -size * COUNT, MPI_SEEK_END), MPI_SUCCESS);
    CHECK_EQ(MPI_File_iread_shared(file, in, COUNT, MPI_INT, &request), MPI_SUCCESS);
    CHECK_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
    check_in(&status, in[0] / COUNT, COUNT);
    // Each rank has read the numbers of one rank, and each the numbers of another.
    seen[in[0] / COUNT] = 1;
    MPI_Allreduce(MPI_IN_PLACE, seen, size, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD);
    for (int index = 0; index < size; index++) CHECK_EQ(seen[index], 1);
    // In the order of ranks, behind each other, of different lengths.
    CHECK_EQ(MPI_File_seek_shared(file, 5, MPI_SEEK_SET), MPI_SUCCESS);
    fill(rank + 1);
    CHECK_EQ(MPI_File_write_ordered(file, out, 10 * (rank + 1), MPI_INT, &status), MPI_SUCCESS);
    CHECK_EQ(MPI_File_get_position_shared(file, &at), MPI_SUCCESS);
    CHECK_EQ(at, 5 + 10 * size * (size + 1) / 2);
    settle();
    CHECK_EQ(MPI_File_read_at(file, 5 + 10 * rank * (rank + 1) / 2, in, 10 * (rank + 1), MPI_INT, &status),
             MPI_SUCCESS);
    check_in(&status, rank + 1, 10 * (rank + 1));
    CHECK_EQ(MPI_File_seek_shared(file, 5, MPI_SEEK_SET), MPI_SUCCESS);
    fill(rank + 1);
    CHECK_EQ(MPI_File_read_ordered_begin(file, in, 10 * (rank + 1), MPI_INT), MPI_SUCCESS);
    CHECK_EQ(MPI_File_read_ordered_end(file, in, &status), MPI_SUCCESS);
    check_in(&status, rank + 1, 10 * (rank + 1));
    settle();
    // What would end beyond all offsets is refused, and the pointer stays.
    const MPI_Offset last = INT64_MAX / sizeof(int) - 1;
    CHECK_EQ(MPI_File_seek_shared(file, last, MPI_SEEK_SET), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_File_write_shared(file, out, 10, MPI_INT, &status)), MPI_ERR_ARG);
    CHECK_EQ(class_of(MPI_File_read_shared(file, in, 10, MPI_INT, &status)), MPI_ERR_ARG);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_get_position_shared(file, &at), MPI_SUCCESS);
    CHECK_EQ(at, last);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(class_of(MPI_File_write_ordered(file, out, 10, MPI_INT, &status)), MPI_ERR_ARG);
    CHECK_EQ(MPI_File_get_position_shared(file, &at), MPI_SUCCESS);
    CHECK_EQ(at, last);
    CHECK_EQ(MPI_File_seek_shared(file, 0, MPI_SEEK_SET), MPI_SUCCESS);
}

/* Each rank sees every third number, of a file that begins with a header. */
static void views(void) {
    MPI_Status status;
    MPI_Datatype column, etype, filetype;
    char datarep[MPI_MAX_DATAREP_STRING];
    MPI_Offset displacement = -1;
    CHECK_EQ(MPI_File_set_size(file, 0), MPI_SUCCESS);
    MPI_Type_create_resized(MPI_INT, 0, size * sizeof(int), &column);
    MPI_Type_commit(&column);
    CHECK_EQ(MPI_File_set_view(file, 16 + rank * sizeof(int), MPI_INT, column, "native", MPI_INFO_NULL), MPI_SUCCESS);
    CHECK_EQ(MPI_File_get_view(file, &displacement, &etype, &filetype, datarep), MPI_SUCCESS);
    CHECK_EQ(displacement, 16 + rank * sizeof(int));
    CHECK(etype == MPI_INT);
    CHECK(strcmp(datarep, "native") == 0);
    MPI_Aint lower, extent;
    MPI_Type_get_extent(filetype, &lower, &extent);
    CHECK_EQ(extent, size * sizeof(int));
    MPI_Type_free(&filetype);
    MPI_Type_free(&column);
    fill(rank);
    CHECK_EQ(position(), 0);
    CHECK_EQ(MPI_File_write_all(file, out, COUNT, MPI_INT, &status), MPI_SUCCESS);
    check_out(&status);
    settle();
    MPI_Offset bytes = -1;
    MPI_File_get_size(file, &bytes);
    CHECK_EQ(bytes, 16 + (MPI_Offset)size * COUNT * sizeof(int));
    CHECK_EQ(MPI_File_get_byte_offset(file, 2, &bytes), MPI_SUCCESS);
    CHECK_EQ(bytes, 16 + (2 * size + rank) * sizeof(int));
    CHECK_EQ(MPI_File_seek(file, 0, MPI_SEEK_END), MPI_SUCCESS);
    CHECK_EQ(position(), COUNT);
    CHECK_EQ(MPI_File_read_at_all(file, 0, in, COUNT, MPI_INT, &status), MPI_SUCCESS);
    check_in(&status, rank, COUNT);
    CHECK_EQ(MPI_File_set_view(file, 16, MPI_INT, MPI_INT, "internal", MPI_INFO_NULL), MPI_SUCCESS);
    for (int index = 0; index < 10; index++) {
        CHECK_EQ(MPI_File_read_at(file, index, in, 1, MPI_INT, &status), MPI_SUCCESS);
        CHECK_EQ(in[0], index % size * COUNT + index / size);
    }
    CHECK_EQ(class_of(MPI_File_set_view(file, 0, MPI_INT, MPI_BYTE, "native", MPI_INFO_NULL)), MPI_ERR_TYPE);
    CHECK_EQ(class_of(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "none", MPI_INFO_NULL)),
             MPI_ERR_UNSUPPORTED_DATAREP);
    CHECK_EQ(class_of(MPI_File_set_view(file, -1, MPI_INT, MPI_INT, "native", MPI_INFO_NULL)), MPI_ERR_DISP);
    CHECK_EQ(class_of(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL)),
             MPI_ERR_DISP);
    if (size > 1) {
        MPI_Datatype other = rank == 1 ? MPI_SHORT : MPI_INT;
        CHECK_EQ(class_of(MPI_File_set_view(file, 0, other, other, "native", MPI_INFO_NULL)), MPI_ERR_NOT_SAME);
    }
    CHECK_EQ(MPI_File_get_type_extent(file, MPI_DOUBLE, &extent), MPI_SUCCESS);
    CHECK_EQ(extent, sizeof(double));
    // Of a type that is not committed too.
    MPI_Type_contiguous(3, MPI_INT, &column);
    CHECK_EQ(MPI_File_get_type_extent(file, column, &extent), MPI_SUCCESS);
    CHECK_EQ(extent, 3 * sizeof(int));
    MPI_Type_free(&column);
    CHECK_EQ(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_SUCCESS);
}

/* A stream from the end of the file on, then a file without random access. */
static void streams(void) {
    MPI_Status status;
    MPI_Offset at = -1, bytes = -1;
    MPI_File_set_size(file, 8);
    MPI_File_close(&file);
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL, &file), MPI_SUCCESS);
    CHECK_EQ(position(), 8);
    MPI_File_get_position_shared(file, &at);
    CHECK_EQ(at, 8);
    CHECK_EQ(class_of(MPI_File_read(file, in, 1, MPI_INT, &status)), MPI_ERR_ACCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_write_ordered(file, &rank, 1, MPI_INT, &status), MPI_SUCCESS);
    MPI_File_get_size(file, &bytes);
    CHECK_EQ(bytes, 8 + size * sizeof(int));
    MPI_File_close(&file);
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file),
             MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_File_read_at(file, 0, in, 1, MPI_INT, &status)), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_EQ(class_of(MPI_File_seek_shared(file, 4, MPI_SEEK_SET)), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_EQ(class_of(MPI_File_get_position_shared(file, &at)), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_EQ(MPI_File_read_ordered(file, in, rank == 0 ? 8 : 0, MPI_BYTE, &status), MPI_SUCCESS);
    CHECK_EQ(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_SUCCESS);
    CHECK_EQ(MPI_File_get_byte_offset(file, 3, &at), MPI_SUCCESS);
    CHECK_EQ(at, 8 + 3 * sizeof(int));
    CHECK_EQ(MPI_File_read_ordered(file, in, 1, MPI_INT, &status), MPI_SUCCESS);
    CHECK_EQ(in[0], rank);
    // The view begins where the shared pointer is when all have come, whoever comes last.
    MPI_File_close(&file);
    if (rank == 0) CHECK_EQ(truncate(name, 0), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file),
             MPI_SUCCESS);
    if (rank == size - 1) {
        usleep(50000);
        CHECK_EQ(MPI_File_write_shared(file, out, 100, MPI_BYTE, &status), MPI_SUCCESS);
    }
    CHECK_EQ(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL),
             MPI_SUCCESS);
    MPI_Datatype types[2];
    char datarep[MPI_MAX_DATAREP_STRING];
    CHECK_EQ(MPI_File_get_view(file, &at, &types[0], &types[1], datarep), MPI_SUCCESS);
    CHECK_EQ(at, 100);
    CHECK_EQ(MPI_File_write_ordered(file, out, 50, MPI_BYTE, &status), MPI_SUCCESS);
    MPI_File_get_size(file, &bytes);
    CHECK_EQ(bytes, 100 + 50 * size);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK_EQ(chdir("/dev/shm"), 0);
    if (rank == 0) snprintf(name, sizeof name, "files-access-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file), MPI_SUCCESS);
    CHECK_EQ(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_SUCCESS);
    offsets();
    CHECK_EQ(MPI_File_set_atomicity(file, 1), MPI_SUCCESS);
    own_pointer();
    shared_pointer();
    views();
    streams();
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    if (rank == 0) CHECK_EQ(MPI_File_delete(name, MPI_INFO_NULL), MPI_SUCCESS);
    return finish();
}
