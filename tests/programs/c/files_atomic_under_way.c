// In atomic mode operations that are under way leave the data of one member, whole, also where a member's data goes
// back in the file, so that it waits for the others; whatever they read and write meanwhile, and wherever they live.
//# ranks: 2 4
//# abi: mpi5
//# stdout: passed
//# timeout: 60
#include "check.h"
#include <unistd.h>

enum { PIECE = 512, PIECES = 400, BYTES = PIECE * PIECES, ROUNDS = 8 };

static char name[64];
static MPI_File file;
static unsigned char data[2][BYTES], own[BYTES];

/* Views whose second copy lies before the end of the first. */
static void view_back(void) {
    int lengths[2] = {PIECE, PIECE}, places[2] = {0, BYTES};
    MPI_Datatype blocks, filetype;
    MPI_Type_indexed(2, lengths, places, MPI_BYTE, &blocks);
    MPI_Type_create_resized(blocks, 0, PIECE, &filetype);
    MPI_Type_commit(&filetype);
    CHECK_EQ(MPI_File_set_view(file, 0, MPI_BYTE, filetype, "native", MPI_INFO_NULL), MPI_SUCCESS);
    MPI_Type_free(&blocks);
    MPI_Type_free(&filetype);
}

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
static int one_writer(const unsigned char *bytes) {
    for (int byte = 1; byte < BYTES; byte++)
        CHECK_EQ(bytes[byte], bytes[0]);
    return bytes[0];
}

static void whole(MPI_Request *request) {
    MPI_Status status;
    int count = -1;
    CHECK_EQ(MPI_Wait(request, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQ(count, BYTES);
}

/* Ranks that wait for it, that meet others first, and that write by themselves meanwhile. */
static void play(int round) {
    MPI_Request requests[2], alone;
    memset(data[0], 10 + rank, BYTES);
    CHECK_EQ(MPI_File_iwrite_at_all(file, 0, data[0], BYTES, MPI_BYTE, &requests[0]), MPI_SUCCESS);
    CHECK_EQ(MPI_File_iread_at_all(file, 0, data[1], BYTES, MPI_BYTE, &requests[1]), MPI_SUCCESS);
    memset(own, 30 + rank, BYTES);
    switch ((rank + round) % 4) {
    case 0: whole(&requests[0]); break;
    case 1: MPI_File_write_at(file, 0, own, BYTES, MPI_BYTE, MPI_STATUS_IGNORE); break;
    case 2:
        MPI_File_iwrite_at(file, 0, own, BYTES, MPI_BYTE, &alone);
        whole(&alone);
        break;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (requests[0] != MPI_REQUEST_NULL) whole(&requests[0]);
    whole(&requests[1]);
    CHECK(one_writer(data[1]) >= 10);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_read_at_all(file, 0, data[1], BYTES, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    int found = one_writer(data[1]), least, most;
    MPI_Allreduce(&found, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&found, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK_EQ(least, most);
}

/* A split collective, and the mode ends before it does; one member's view goes forth. */
static void split(void) {
    if (rank == 0) MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    else view_back();
    memset(data[0], 50 + rank, BYTES);
    CHECK_EQ(MPI_File_write_at_all_begin(file, 0, data[0], BYTES, MPI_BYTE), MPI_SUCCESS);
    CHECK_EQ(MPI_File_set_atomicity(file, 0), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_write_at_all_end(file, data[0], MPI_STATUS_IGNORE), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), MPI_SUCCESS);
    CHECK_EQ(MPI_File_read_at_all(file, 0, data[1], BYTES, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    // What goes forth is there first.
    if (size > 1) CHECK(data[1][0] > 50);
    CHECK_EQ(MPI_File_set_atomicity(file, 1), MPI_SUCCESS);
    view_back();
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (rank == 0) snprintf(name, sizeof name, "/dev/shm/files-atomic-way-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), MPI_SUCCESS);
    CHECK_EQ(MPI_File_set_atomicity(file, 1), MPI_SUCCESS);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 2)
            view_with_gaps();
        else
            view_back();
        play(round);
    }
    split();
    // Closed while it is under way.
    MPI_Request left;
    CHECK_EQ(MPI_File_iwrite_at_all(file, 0, data[0], BYTES, MPI_BYTE, &left), MPI_SUCCESS);
    CHECK_EQ(MPI_Request_free(&left), MPI_SUCCESS);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    return finish();
}
