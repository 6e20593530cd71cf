// Files in representations of the program have the bytes that its functions make, and come back: one in which bytes are
// swapped, one in which an int takes 8 bytes, one without functions, one whose functions fail.
//# ranks: 2
//# abi: mpich mpi5 openmpi
//# stdout: passed
#include "check.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char name[64];
static int calls, seen_size, fails;

static void swapped(unsigned char *to, const unsigned char *from, long size) {
    for (long at = 0; at < size; at++) to[at] = from[size - 1 - at];
}

// All of these trials' data is ints: item i of the user's buffer lies where the datatype says.
static MPI_Aint place(MPI_Datatype datatype, MPI_Offset item) {
    int size;
    MPI_Aint lower, extent;
    MPI_Type_size(datatype, &size);
    MPI_Type_get_extent(datatype, &lower, &extent);
    seen_size = size;
    MPI_Offset each = size / (MPI_Offset)sizeof(int);
    // A vector of 2 ints with a gap of one between them, or ints one behind the other.
    return item / each * extent + item % each * (size == 8 ? 8 : 4);
}

static int extent_4(MPI_Datatype datatype, MPI_Aint *extent, void *state) {
    CHECK_EQ(*(int *)state, 77);
    CHECK(datatype == MPI_INT || datatype == MPI_DOUBLE);
    *extent = datatype == MPI_INT ? 4 : 8;
    return MPI_SUCCESS;
}

static int extent_8(MPI_Datatype datatype, MPI_Aint *extent, void *state) {
    (void)datatype, (void)state;
    *extent = 8;
    return MPI_SUCCESS;
}

static int extent_fails(MPI_Datatype datatype, MPI_Aint *extent, void *state) {
    (void)datatype, (void)extent, (void)state;
    return MPI_ERR_OTHER;
}

static int read_swapped(void *user, MPI_Datatype datatype, int count, void *file, MPI_Offset position, void *state) {
    CHECK_EQ(*(int *)state, 77);
    calls++;
    for (int at = 0; at < count; at++)
        swapped((unsigned char *)user + place(datatype, position + at), (unsigned char *)file + 4 * at, 4);
    return MPI_SUCCESS;
}

static int write_swapped(void *user, MPI_Datatype datatype, int count, void *file, MPI_Offset position, void *state) {
    CHECK_EQ(*(int *)state, 77);
    calls++;
    for (int at = 0; at < count; at++)
        swapped((unsigned char *)file + 4 * at, (unsigned char *)user + place(datatype, position + at), 4);
    return MPI_SUCCESS;
}

static int read_wide(void *user, MPI_Datatype datatype, int count, void *file, MPI_Offset position, void *state) {
    (void)state;
    for (int at = 0; at < count; at++) {
        long wide;
        memcpy(&wide, (char *)file + 8 * at, 8);
        *(int *)((char *)user + place(datatype, position + at)) = (int)wide;
    }
    return fails ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int write_wide(void *user, MPI_Datatype datatype, int count, void *file, MPI_Offset position, void *state) {
    (void)state;
    for (int at = 0; at < count; at++) {
        long wide = *(int *)((char *)user + place(datatype, position + at));
        memcpy((char *)file + 8 * at, &wide, 8);
    }
    return fails ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static void expect_bytes(const unsigned char *wanted, long length) {
    unsigned char bytes[128];
    MPI_Barrier(MPI_COMM_WORLD);
    int descriptor = open(name, O_RDONLY);
    CHECK_EQ(read(descriptor, bytes, sizeof bytes), length);
    close(descriptor);
    CHECK_EQ(memcmp(bytes, wanted, length), 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void registers(void) {
    static int state = 77;
    char longest[MPI_MAX_DATAREP_STRING + 2];
    CHECK_EQ(MPI_Register_datarep("swapped", read_swapped, write_swapped, extent_4, &state), MPI_SUCCESS);
    CHECK_EQ(MPI_Register_datarep("wide", read_wide, write_wide, extent_8, NULL), MPI_SUCCESS);
    int code = MPI_Register_datarep("plain", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_4, &state);
    CHECK_EQ(code, MPI_SUCCESS);
    CHECK_EQ(MPI_Register_datarep("failing", read_wide, write_wide, extent_fails, NULL), MPI_SUCCESS);
    code = MPI_Register_datarep("wide", read_swapped, write_swapped, extent_4, &state);
    CHECK_EQ(class_of(code), MPI_ERR_DUP_DATAREP);
    code = MPI_Register_datarep("native", read_swapped, write_swapped, extent_4, &state);
    CHECK_EQ(class_of(code), MPI_ERR_DUP_DATAREP);
    code = MPI_Register_datarep("", read_swapped, write_swapped, extent_4, &state);
    CHECK_EQ(class_of(code), MPI_ERR_ARG);
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = 0;
    code = MPI_Register_datarep(longest, read_swapped, write_swapped, extent_4, &state);
    CHECK_EQ(class_of(code), MPI_ERR_ARG);
}

static void swaps(MPI_File file) {
    static const unsigned char wanted[] = {0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 1, 1, 0, 0, 1, 2};
    int out[3] = {rank * 256 + 1, -1, rank * 256 + 2}, in[3] = {-1, -1, -1}, back[4];
    MPI_Datatype gapped;
    MPI_Type_vector(2, 1, 2, MPI_INT, &gapped);
    MPI_Type_commit(&gapped);
    CHECK_EQ(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "swapped", MPI_INFO_NULL), MPI_SUCCESS);
    MPI_Status status;
    int count;
    CHECK_EQ(MPI_File_write_at_all(file, rank * 2, out, 1, gapped, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQ(count, 2);
    CHECK_EQ(seen_size, 8);
    expect_bytes(wanted, sizeof wanted);
    CHECK_EQ(MPI_File_read_at_all(file, rank * 2, in, 1, gapped, &status), MPI_SUCCESS);
    CHECK(in[0] == out[0] && in[1] == -1 && in[2] == out[2]);
    // Three of which two are there.
    CHECK_EQ(MPI_File_read_at(file, 2, back, 3, MPI_INT, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQ(count, 2);
    CHECK(back[0] == 257 && back[1] == 258);
    CHECK(calls >= 3);
    // A request.
    MPI_Request request;
    CHECK_EQ(MPI_File_iread_at(file, 1, back, 1, MPI_INT, &request), MPI_SUCCESS);
    MPI_Wait(&request, &status);
    CHECK_EQ(back[0], 2);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Type_free(&gapped);
}

static void doubles(MPI_File file) {
    static const unsigned char wanted[32] = {5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0,
                                             8, 0, 0, 0, 0, 0, 0, 0, 9};
    MPI_File_set_size(file, 0);
    MPI_Datatype turns;
    MPI_Aint extent;
    int sizes[1] = {2}, lengths[1] = {1}, starts[1] = {0};
    MPI_Type_create_subarray(1, sizes, lengths, starts, MPI_ORDER_C, MPI_INT, &turns);
    MPI_Type_commit(&turns);
    CHECK_EQ(MPI_File_set_view(file, rank * 8, MPI_INT, turns, "wide", MPI_INFO_NULL), MPI_SUCCESS);
    CHECK_EQ(MPI_File_get_type_extent(file, MPI_INT, &extent), MPI_SUCCESS);
    CHECK_EQ(extent, 8);
    CHECK_EQ(MPI_File_get_type_extent(file, turns, &extent), MPI_SUCCESS);
    CHECK_EQ(extent, 16);
    MPI_Offset displacement;
    MPI_Datatype etype, filetype;
    char representation[MPI_MAX_DATAREP_STRING];
    CHECK_EQ(MPI_File_get_view(file, &displacement, &etype, &filetype, representation), MPI_SUCCESS);
    CHECK_EQ(strcmp(representation, "wide"), 0);
    MPI_Type_free(&filetype);
    int out[2] = {5 + rank, 8 + rank}, in[3] = {0, 0, 0};
    MPI_Status status;
    int count;
    CHECK_EQ(MPI_File_write_all(file, out, 2, MPI_INT, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQ(count, 2);
    expect_bytes(wanted, sizeof wanted);
    CHECK_EQ(MPI_File_read_at(file, 1, in, 3, MPI_INT, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQ(count, 1);
    CHECK(in[0] == 8 + rank && in[1] == 0);

    // A function that fails at one member fails a collective write at all; that member writes nothing.
    fails = rank == 1;
    in[1] = 5;
    int code = MPI_File_write_at_all(file, 0, in + 1, 1, MPI_INT, &status);
    CHECK_EQ(class_of(code), MPI_ERR_CONVERSION);
    code = MPI_File_read_at(file, 0, in, 1, MPI_INT, &status);
    CHECK_EQ(class_of(code), rank == 1 ? MPI_ERR_CONVERSION : MPI_SUCCESS);
    fails = 0;
    expect_bytes(wanted, sizeof wanted);
    MPI_Type_free(&turns);
}

static void odd(MPI_File file) {
    int in = 0;
    MPI_Status status;
    CHECK_EQ(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "plain", MPI_INFO_NULL), MPI_SUCCESS);
    CHECK_EQ(MPI_File_read_at_all(file, 0, &in, 1, MPI_INT, &status), MPI_SUCCESS);
    CHECK_EQ(in, 5);
    int code = MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "failing", MPI_INFO_NULL);
    CHECK_EQ(class_of(code), MPI_ERR_CONVERSION);
    code = MPI_File_set_view(file, 0, MPI_INT, MPI_INT, rank ? "plain" : "swapped", MPI_INFO_NULL);
    CHECK_EQ(class_of(code), MPI_ERR_NOT_SAME);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK_EQ(chdir("/dev/shm"), 0);
    if (rank == 0) snprintf(name, sizeof name, "files-datarep-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    registers();
    MPI_File file;
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), MPI_SUCCESS);
    swaps(file);
    doubles(file);
    odd(file);
    MPI_File_close(&file);
    return finish();
}
