// Hints that change while a collective operation is under way are for the next one: members meet in the way that was in
// force when they started it, at whatever moment each of them comes to it.
//# ranks: 2 4
//# abi: mpich mpi5 openmpi
//# stdout: passed
#include "check.h"
#include <unistd.h>

enum { ROUNDS = 60, PIECE = 64, PIECES = 300, BYTES = PIECE * PIECES };

static char name[64];
static MPI_File file;
static unsigned char out[BYTES], in[BYTES];

/* What the members hint in a round: each kind of change comes after each other. */
static MPI_Info hints_of(int round) {
    static const char *const values[] = {"disable", "enable", "automatic"};
    static const char *const memory[] = {"1", "70000", "16777216"};
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", values[round % 3]);
    MPI_Info_set(info, "romio_cb_read", values[round / 2 % 3]);
    MPI_Info_set(info, "cb_buffer_size", memory[round / 3 % 3]);
    return info;
}

/* The members' pieces in turns. */
static void view(MPI_Info info) {
    MPI_Datatype turns;
    MPI_Type_vector(PIECES, PIECE, PIECE * size, MPI_BYTE, &turns);
    MPI_Type_commit(&turns);
    CHECK_EQ(MPI_File_set_view(file, PIECE * rank, MPI_BYTE, turns, "native", info), MPI_SUCCESS);
    MPI_Type_free(&turns);
}

/* Changes hints, by either of the calls that do. */
static void change(int round) {
    MPI_Info info = hints_of(round);
    if (round % 2)
        view(info);
    else
        CHECK_EQ(MPI_File_set_info(file, info), MPI_SUCCESS);
    MPI_Info_free(&info);
}

static void whole(MPI_Request *request) {
    MPI_Status status;
    int count = -1;
    CHECK_EQ(MPI_Wait(request, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQ(count, BYTES);
}

static unsigned char byte_of(int round, int at) { return (unsigned char)(7 * round + 31 * rank + at % 251); }

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (rank == 0) snprintf(name, sizeof name, "/dev/shm/files-changing-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), MPI_SUCCESS);
    view(MPI_INFO_NULL);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[2];
        for (int at = 0; at < BYTES; at++) out[at] = byte_of(round, at);
        memset(in, 0, sizeof in);
        // One member starts long after the others, and changes the hints at once.
        if (rank == round % size)
            for (int other = 1; other < size; other++)
                MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQ(MPI_File_iwrite_at_all(file, 0, out, BYTES, MPI_BYTE, &requests[0]), MPI_SUCCESS);
        CHECK_EQ(MPI_File_iread_at_all(file, 0, in, BYTES, MPI_BYTE, &requests[1]), MPI_SUCCESS);
        if (rank != round % size) MPI_Send(NULL, 0, MPI_BYTE, round % size, round, MPI_COMM_WORLD);
        change(round);
        whole(&requests[1]);
        whole(&requests[0]);
        CHECK(memcmp(in, out, BYTES) == 0);
        // The split form, whose hints change twice.
        memset(in, 0, sizeof in);
        CHECK_EQ(MPI_File_read_at_all_begin(file, 0, in, BYTES, MPI_BYTE), MPI_SUCCESS);
        MPI_Info info = hints_of(round + 1);
        CHECK_EQ(MPI_File_set_info(file, info), MPI_SUCCESS);
        MPI_Info_free(&info);
        change(2 * round);
        CHECK_EQ(MPI_File_read_at_all_end(file, in, MPI_STATUS_IGNORE), MPI_SUCCESS);
        CHECK(memcmp(in, out, BYTES) == 0);
    }
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    return finish();
}
