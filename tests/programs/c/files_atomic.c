// In atomic mode overlapping writes leave the data of one of them, whole, and reads see none in part; many members move
// the shared pointer at once, and each byte is one member's. Wherever the members live.
//# ranks: 2 4
//# abi: mpi5
//# stdout: passed
//# timeout: 60
#include "check.h"
#include <unistd.h>

enum { PIECE = 64, PIECES = 256, BYTES = PIECE * PIECES, ROUNDS = 6, RECORDS = 25, RECORD_MOST = 200 };

static char name[64];
static MPI_File file;
static unsigned char data[BYTES];

/* Pieces with gaps as long, which the members have in common. */
static void view_with_gaps(void) {
    MPI_Datatype piece, filetype;
    MPI_Type_contiguous(PIECE, MPI_BYTE, &piece);
    MPI_Type_create_resized(piece, 0, 2 * PIECE, &filetype);
    MPI_Type_commit(&filetype);
    CHECK_EQ(MPI_File_set_view(file, 0, MPI_BYTE, filetype, "native", MPI_INFO_NULL), MPI_SUCCESS);
    MPI_Type_free(&piece);
    MPI_Type_free(&filetype);
}

/* All of it is as one member wrote it. */
static int one_writer(void) {
    for (int byte = 1; byte < BYTES; byte++)
        CHECK_EQ(data[byte], data[0]);
    return data[0];
}

static void alone(void) {
    MPI_Status status;
    for (int round = 0; round < ROUNDS; round++) {
        memset(data, 1 + rank, BYTES);
        CHECK_EQ(MPI_File_write_at(file, 0, data, BYTES, MPI_BYTE, &status), MPI_SUCCESS);
        CHECK_EQ(MPI_File_read_at(file, 0, data, BYTES, MPI_BYTE, &status), MPI_SUCCESS);
        CHECK(one_writer() <= size);
        // Sequentially consistent: what this member has written is there, or what came later.
        CHECK(data[0] > 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_read_at(file, 0, data, BYTES, MPI_BYTE, &status), MPI_SUCCESS);
    int found = one_writer(), least, most;
    MPI_Allreduce(&found, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&found, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK_EQ(least, most);
}

/* What one member has said that it wrote, another sees without more. */
static void at_once(void) {
    MPI_Status status;
    for (int round = 0; round < ROUNDS; round++) {
        int value = 100 + round, writer = round % size;
        memset(data, value, BYTES);
        if (rank == writer)
            CHECK_EQ(MPI_File_write_at(file, 0, data, BYTES, MPI_BYTE, &status), MPI_SUCCESS);
        MPI_Barrier(MPI_COMM_WORLD);
        memset(data, 0, BYTES);
        CHECK_EQ(MPI_File_read_at(file, 0, data, BYTES, MPI_BYTE, &status), MPI_SUCCESS);
        CHECK_EQ(one_writer(), value);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* One call of all, whose data overlaps: short pieces, and one long. */
static void together(void) {
    MPI_Status status;
    for (int round = 0; round < 4; round++) {
        if (round % 2 == 0)
            view_with_gaps();
        else
            CHECK_EQ(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), MPI_SUCCESS);
        memset(data, 10 * round + rank, BYTES);
        CHECK_EQ(MPI_File_write_at_all(file, 0, data, BYTES, MPI_BYTE, &status), MPI_SUCCESS);
        CHECK_EQ(MPI_File_read_at_all(file, 0, data, BYTES, MPI_BYTE, &status), MPI_SUCCESS);
        CHECK_EQ(one_writer(), 10 * round + size - 1);
    }
}

/* Views whose second copy lies before the end of the first: each member's data goes back in the file. */
static void backwards(void) {
    int lengths[2] = {PIECE, PIECE}, places[2] = {0, BYTES};
    MPI_Datatype blocks, filetype;
    MPI_Type_indexed(2, lengths, places, MPI_BYTE, &blocks);
    MPI_Type_create_resized(blocks, 0, PIECE, &filetype);
    MPI_Type_commit(&filetype);
    CHECK_EQ(MPI_File_set_view(file, 0, MPI_BYTE, filetype, "native", MPI_INFO_NULL), MPI_SUCCESS);
    MPI_Type_free(&blocks);
    MPI_Type_free(&filetype);
    MPI_Status status;
    memset(data, 70 + rank, BYTES);
    CHECK_EQ(MPI_File_write_at_all(file, 0, data, BYTES, MPI_BYTE, &status), MPI_SUCCESS);
    CHECK_EQ(MPI_File_read_at_all(file, 0, data, BYTES, MPI_BYTE, &status), MPI_SUCCESS);
    CHECK(one_writer() >= 70);
}

/* Records that begin with their length, their writer and their number. */
static void shared(int is_ordered) {
    MPI_Status status;
    MPI_Offset bytes;
    CHECK_EQ(MPI_File_set_size(file, 0), MPI_SUCCESS);
    CHECK_EQ(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), MPI_SUCCESS);
    for (int number = 0; number < RECORDS; number++) {
        int length = 3 + (number * 37 + rank * 101) % RECORD_MOST;
        memset(data, 0xaa, length);
        data[0] = (unsigned char)length, data[1] = (unsigned char)rank, data[2] = (unsigned char)number;
        if (is_ordered)
            CHECK_EQ(MPI_File_write_ordered(file, data, length, MPI_BYTE, &status), MPI_SUCCESS);
        else
            CHECK_EQ(MPI_File_write_shared(file, data, length, MPI_BYTE, &status), MPI_SUCCESS);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_get_size(file, &bytes), MPI_SUCCESS);
    MPI_Offset at = 0;
    CHECK_EQ(MPI_File_get_position_shared(file, &at), MPI_SUCCESS);
    CHECK_EQ(at, bytes);
    unsigned char *all = malloc((size_t)bytes);
    CHECK_EQ(MPI_File_read_at(file, 0, all, (int)bytes, MPI_BYTE, &status), MPI_SUCCESS);
    int next[64] = {0}, records = 0;
    for (at = 0; at < bytes; at += all[at], records++) {
        CHECK(all[at] >= 3 && all[at + 1] < size);
        CHECK_EQ(all[at + 2], next[all[at + 1]]++);
        if (is_ordered)
            CHECK_EQ(all[at + 1], records % size);
        for (int byte = 3; byte < all[at]; byte++)
            CHECK_EQ(all[at + byte], 0xaa);
    }
    CHECK_EQ(records, RECORDS * size);
    free(all);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (rank == 0) snprintf(name, sizeof name, "/dev/shm/files-atomic-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, is_atomic = 0;
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), MPI_SUCCESS);
    shared(0);
    shared(1);
    CHECK_EQ(MPI_File_set_atomicity(file, 1), MPI_SUCCESS);
    CHECK_EQ(MPI_File_set_atomicity(file, 0), MPI_SUCCESS);
    CHECK_EQ(MPI_File_set_atomicity(file, 1), MPI_SUCCESS);
    CHECK_EQ(MPI_File_get_atomicity(file, &is_atomic), MPI_SUCCESS);
    CHECK_EQ(is_atomic, 1);
    view_with_gaps();
    alone();
    at_once();
    together();
    backwards();
    shared(0);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    // All members have closed it before it goes, and it has gone when any returns.
    CHECK(access(name, F_OK) != 0);
    return finish();
}
