/* One MPI writes a file, another reads it: handed write|read NAME DATAREP. Both phases run on any number of ranks,
   each with its own views; the file is the same for all numbers. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INTS = 4096, ROWS = 60, COLUMNS = 48, DOUBLES = 2400 };

static int rank, size, writes;
static const char *datarep;
static MPI_File file;

#define CHECK_EQ(left, right)                                                                               \
    do {                                                                                                    \
        long long left_ = (long long)(left), right_ = (long long)(right);                                   \
        if (left_ != right_) {                                                                              \
            fprintf(stderr, "rank %d: line %d: %s is %lld, not %lld\n", rank, __LINE__, #left, left_, right_); \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                   \
        }                                                                                                   \
    } while (0)

static void view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype) {
    CHECK_EQ(MPI_File_set_view(file, displacement, etype, filetype, (char *)datarep, MPI_INFO_NULL), MPI_SUCCESS);
}

static void move(void *data, int count, MPI_Datatype type) {
    MPI_Status status;
    int found = -1;
    if (writes) CHECK_EQ(MPI_File_write_all(file, data, count, type, &status), MPI_SUCCESS);
    else CHECK_EQ(MPI_File_read_all(file, data, count, type, &status), MPI_SUCCESS);
    MPI_Get_count(&status, type, &found);
    CHECK_EQ(found, count);
}

/* Where a rank's part of `all` begins. */
static int begin(int all, int who) { return (int)((long)all * who / size); }

/* Integers, in contiguous parts. */
static void integers(MPI_Offset at) {
    int first = begin(INTS, rank), count = begin(INTS, rank + 1) - first, *data = calloc(count + 1, sizeof *data);
    for (int index = 0; writes && index < count; index++) data[index] = (first + index) * 500003 - 7;
    MPI_Aint extent;
    CHECK_EQ(MPI_File_get_type_extent(file, MPI_INT, &extent), MPI_SUCCESS);
    view(at + first * 4, MPI_INT, MPI_INT);
    move(data, count, MPI_INT);
    for (int index = 0; index < count; index++) CHECK_EQ(data[index], (first + index) * 500003 - 7);
    free(data);
}

/* Doubles, of which ranks have each `size`th; with gaps in memory. */
static void doubles(MPI_Offset at) {
    int count = (DOUBLES - rank + size - 1) / size;
    double *data = calloc(2 * count + 1, sizeof *data);
    MPI_Datatype each, memory;
    MPI_Type_create_resized(MPI_DOUBLE, 0, size * 8, &each);
    MPI_Type_commit(&each);
    MPI_Type_vector(count, 1, 2, MPI_DOUBLE, &memory);
    MPI_Type_commit(&memory);
    for (int index = 0; writes && index < count; index++) data[2 * index] = (rank + index * size) * 0.37 - 100;
    view(at + rank * 8, MPI_DOUBLE, each);
    move(data, 1, memory);
    for (int index = 0; index < count; index++)
        CHECK_EQ(data[2 * index] == (rank + index * size) * 0.37 - 100 && data[2 * index + 1] == 0, 1);
    MPI_Type_free(&each);
    MPI_Type_free(&memory);
    free(data);
}

/* A matrix of shorts, in bands of columns. */
static void shorts(MPI_Offset at) {
    int first = begin(COLUMNS, rank), width = begin(COLUMNS, rank + 1) - first;
    int sizes[2] = {ROWS, COLUMNS}, parts[2] = {ROWS, width}, starts[2] = {0, first};
    short *data = calloc(ROWS * width, sizeof *data);
    MPI_Datatype band;
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_SHORT, &band);
    MPI_Type_commit(&band);
    for (int index = 0; writes && index < ROWS * width; index++)
        data[index] = (short)(index / width * COLUMNS + first + index % width - 999);
    view(at, MPI_SHORT, band);
    move(data, ROWS * width, MPI_SHORT);
    for (int index = 0; index < ROWS * width; index++)
        CHECK_EQ(data[index], index / width * COLUMNS + first + index % width - 999);
    MPI_Type_free(&band);
    free(data);
}

/* Text, in the order of ranks, by the shared pointer. */
static void text(MPI_Offset at) {
    enum { LETTERS = 2400 };
    int first = begin(LETTERS, rank), count = begin(LETTERS, rank + 1) - first;
    char *data = calloc(count + 1, 1);
    for (int index = 0; writes && index < count; index++) data[index] = (char)('a' + (first + index) % 26);
    MPI_Status status;
    view(at, MPI_CHAR, MPI_CHAR);
    if (writes) CHECK_EQ(MPI_File_write_ordered(file, data, count, MPI_CHAR, &status), MPI_SUCCESS);
    else CHECK_EQ(MPI_File_read_ordered(file, data, count, MPI_CHAR, &status), MPI_SUCCESS);
    for (int index = 0; index < count; index++) CHECK_EQ(data[index], 'a' + (first + index) % 26);
    free(data);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    writes = argc > 3 && strcmp(argv[1], "write") == 0;
    datarep = argv[3];
    int mode = writes ? MPI_MODE_CREATE | MPI_MODE_RDWR : MPI_MODE_RDONLY;
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, argv[2], mode, MPI_INFO_NULL, &file), MPI_SUCCESS);
    integers(0);
    doubles(INTS * 4);
    shorts(INTS * 4 + DOUBLES * 8);
    text(INTS * 4 + DOUBLES * 8 + ROWS * COLUMNS * 2);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    if (rank == 0) puts("passed");
    MPI_Finalize();
    return 0;
}
