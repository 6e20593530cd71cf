// Data in the order of ranks: short data, which one member moves for all, and such as each moves itself.
//# ranks: 1 3
//# abi: mpich mpi5 openmpi
//# stdout: passed
#include "check.h"
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 300000 };

static char name[64];
static MPI_File file;
static unsigned char out[2 * MOST], in[2 * MOST], all[4 * MOST];

/* Byte `at` of a rank's data. */
static unsigned char byte(int of, int at) { return (unsigned char)(of * 101 + at * 7 + at / 251 + 1); }

static MPI_Offset place(void) {
    MPI_Offset at = -1;
    CHECK_EQ(MPI_File_get_position_shared(file, &at), MPI_SUCCESS);
    return at;
}

/* The bytes of a rank: none of rank 1. */
static int length(int of, int unit) { return of == 1 ? 0 : unit * (of + 1); }

static int before(int of, int unit) {
    int sum = 0;
    for (int lower = 0; lower < of; lower++) sum += length(lower, unit);
    return sum;
}

/* Written behind `header` bytes of the file, and read again; `stride` bytes of memory for each of the last rank. */
static void there_and_back(int unit, int stride, MPI_Offset header) {
    MPI_Status status;
    MPI_Datatype memory = MPI_BYTE;
    int count = -1, mine = length(rank, unit), wide = rank == size - 1 ? stride : 1, total = before(size, unit);
    if (wide > 1) {
        MPI_Type_create_resized(MPI_BYTE, 0, wide, &memory);
        MPI_Type_commit(&memory);
    }
    CHECK_EQ(MPI_File_set_view(file, header, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), MPI_SUCCESS);
    CHECK_EQ(MPI_File_seek_shared(file, 3, MPI_SEEK_SET), MPI_SUCCESS);
    for (int at = 0; at < mine; at++) out[at * wide] = byte(rank, at);
    CHECK_EQ(MPI_File_write_ordered(file, out, mine, memory, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQ(count, mine);
    CHECK_EQ(place(), 3 + total);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_read_at(file, 3, all, total, MPI_BYTE, &status), MPI_SUCCESS);
    for (int of = 0; of < size; of++)
        for (int at = 0; at < length(of, unit); at++) CHECK_EQ(all[before(of, unit) + at], byte(of, at));
    // The file ends in the midst of the last rank's data.
    int cut = total / 8;
    CHECK_EQ(MPI_File_set_size(file, header + 3 + total - cut), MPI_SUCCESS);
    CHECK_EQ(MPI_File_seek_shared(file, 3, MPI_SEEK_SET), MPI_SUCCESS);
    memset(in, 0, sizeof in);
    CHECK_EQ(MPI_File_read_ordered(file, in, mine, memory, &status), MPI_SUCCESS);
    int left = rank == size - 1 ? mine - cut : mine;
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQ(count, left);
    for (int at = 0; at < mine; at++) CHECK_EQ(in[at * wide], at < left ? byte(rank, at) : 0);
    CHECK_EQ(place(), 3 + total);
    if (wide > 1) MPI_Type_free(&memory);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The error of one member is that of all, nothing is written, and the pointer stays. */
static void one_is_wrong(void) {
    MPI_Status status;
    MPI_Offset bytes = -1;
    CHECK_EQ(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), MPI_SUCCESS);
    CHECK_EQ(MPI_File_set_size(file, 10), MPI_SUCCESS);
    CHECK_EQ(MPI_File_seek_shared(file, 5, MPI_SEEK_SET), MPI_SUCCESS);
    int code = MPI_File_write_ordered(file, out, rank == size - 1 ? -1 : 100, MPI_BYTE, &status);
    CHECK_EQ(class_of(code), MPI_ERR_COUNT);
    CHECK_EQ(place(), 5);
    CHECK_EQ(MPI_File_get_size(file, &bytes), MPI_SUCCESS);
    CHECK_EQ(bytes, 10);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_write_ordered(file, out, 100, MPI_BYTE, &status), MPI_SUCCESS);
    CHECK_EQ(MPI_File_get_size(file, &bytes), MPI_SUCCESS);
    CHECK_EQ(bytes, 5 + 100 * size);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* With a view that has gaps. */
static void gaps(void) {
    MPI_Status status;
    MPI_Datatype filetype;
    MPI_Type_create_resized(MPI_INT, 0, 3 * sizeof(int), &filetype);
    MPI_Type_commit(&filetype);
    CHECK_EQ(MPI_File_set_size(file, 0), MPI_SUCCESS);
    CHECK_EQ(MPI_File_set_view(file, 4, MPI_INT, filetype, "native", MPI_INFO_NULL), MPI_SUCCESS);
    int mine[2] = {2 * rank + 1, 2 * rank + 2}, found[64] = {0};
    CHECK_EQ(MPI_File_write_ordered(file, mine, 2, MPI_INT, &status), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_SUCCESS);
    CHECK_EQ(MPI_File_read_at(file, 0, found, 6 * size, MPI_INT, &status), MPI_SUCCESS);
    for (int at = 0; at < 6 * size; at++) CHECK_EQ(found[at], at % 3 == 1 ? at / 3 + 1 : 0);
    MPI_Type_free(&filetype);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK_EQ(chdir("/dev/shm"), 0);
    if (rank == 0) snprintf(name, sizeof name, "files-ordered-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file), MPI_SUCCESS);
    for (int again = 0; again < 50; again++) there_and_back(20 + again, 1, again);
    there_and_back(1000, 2, 1);
    there_and_back(MOST / size, 1, 0);
    there_and_back(MOST / size, 2, 5);
    one_is_wrong();
    gaps();
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    if (rank == 0) CHECK_EQ(MPI_File_delete(name, MPI_INFO_NULL), MPI_SUCCESS);
    return finish();
}
