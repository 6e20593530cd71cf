// Many short pieces with gaps between them, which belong to other members, to other files on the same name, or to
// another writer that knows nothing of MPI: all write at the same time, and no byte of any of them is lost. Nothing is
// where nobody has written, and a file that is cut meanwhile does no harm.
//# ranks: 2 4
//# abi: mpi5
//# stdout: passed
#include "check.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECE = 24, PIECES = 6000, BYTES = PIECE * PIECES, ROUNDS = 8 };

static char name[64];
static unsigned char data[2 * BYTES];
static int stride;

/* The last slot of each stride is a child process's, or nobody's. */
static void view(MPI_File file, int slot) {
    MPI_Datatype piece, filetype;
    MPI_Type_contiguous(PIECE, MPI_BYTE, &piece);
    MPI_Type_create_resized(piece, 0, stride, &filetype);
    MPI_Type_commit(&filetype);
    CHECK_EQ(MPI_File_set_view(file, slot * PIECE, MPI_BYTE, filetype, "native", MPI_INFO_NULL), MPI_SUCCESS);
    MPI_Type_free(&piece);
    MPI_Type_free(&filetype);
}

static unsigned char byte_of(int slot, int round) { return (unsigned char)(1 + slot * 30 + round); }

/* Memory with gaps in every other round. */
static void write_by(MPI_File file, int form, int round) {
    MPI_Datatype memory;
    MPI_Request request;
    MPI_Status status;
    int count = -1;
    if (round % 2)
        MPI_Type_vector(BYTES / 8, 8, 16, MPI_BYTE, &memory);
    else
        MPI_Type_contiguous(BYTES, MPI_BYTE, &memory);
    MPI_Type_commit(&memory);
    memset(data, byte_of(rank, round), sizeof data);
    switch (form) {
    case 0: CHECK_EQ(MPI_File_write_at(file, 0, data, 1, memory, &status), MPI_SUCCESS); break;
    case 1: CHECK_EQ(MPI_File_write_at_all(file, 0, data, 1, memory, &status), MPI_SUCCESS); break;
    case 2:
        CHECK_EQ(MPI_File_iwrite_at(file, 0, data, 1, memory, &request), MPI_SUCCESS);
        CHECK_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
        break;
    default:
        CHECK_EQ(MPI_File_iwrite_at_all(file, 0, data, 1, memory, &request), MPI_SUCCESS);
        CHECK_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
    }
    MPI_Get_elements(&status, MPI_BYTE, &count);
    CHECK_EQ(count, BYTES);
    MPI_Type_free(&memory);
}

/* A writer of the last slot that knows nothing of MPI. */
static pid_t stranger(void) {
    pid_t child = fork();
    if (child != 0) return child;
    unsigned char piece[PIECE];
    int file = open(name, O_WRONLY);
    for (int round = 0; round < ROUNDS; round++)
        for (int at = 0; at < PIECES; at++) {
            memset(piece, byte_of(size, round), PIECE);
            if (pwrite(file, piece, PIECE, (off_t)at * stride + size * PIECE) != PIECE) _exit(1);
        }
    _exit(0);
}

/* What is there: the last of each writer, and zeros in the slot of nobody. */
static void check_all(int has_stranger) {
    int bytes = PIECES * stride;
    unsigned char *all = malloc(bytes);
    int file = open(name, O_RDONLY);
    memset(all, 0, bytes);
    CHECK(pread(file, all, bytes, 0) >= bytes - stride + 1);
    close(file);
    for (int at = 0; at < bytes; at++) {
        int slot = at % stride / PIECE, wanted = byte_of(slot, ROUNDS - 1);
        if (slot > size || (slot == size && !has_stranger)) wanted = 0;
        CHECK_EQ(all[at], wanted);
    }
    free(all);
}

static void together(MPI_File file, int form, int has_stranger) {
    CHECK_EQ(MPI_File_set_size(file, 0), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    pid_t child = has_stranger && rank == 0 ? stranger() : 0;
    for (int round = 0; round < ROUNDS; round++) write_by(file, form, round);
    if (child) {
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    check_all(has_stranger);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The last member cuts the file again and again; the others' calls go well, and so does what comes afterwards. */
static void cut(MPI_File file) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1)
        for (int round = 0; round < 300; round++) CHECK_EQ(truncate(name, round % 3 * 5000), 0);
    else
        for (int round = 0; round < ROUNDS; round++) write_by(file, round % 2 * 2, round);
    MPI_Barrier(MPI_COMM_WORLD);
    together(file, 1, 0);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    stride = (size + 2) * PIECE;
    if (rank == 0) snprintf(name, sizeof name, "/dev/shm/files-gaps-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_File all, own;
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, mode | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &all), MPI_SUCCESS);
    CHECK_EQ(MPI_File_open(MPI_COMM_SELF, name, mode, MPI_INFO_NULL, &own), MPI_SUCCESS);
    view(all, rank);
    view(own, rank);
    for (int form = 0; form < 4; form++) together(all, form, form % 2);
    // Files of their own, on the same name.
    CHECK_EQ(MPI_File_set_size(all, 0), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) write_by(own, round % 4, round);
    MPI_Barrier(MPI_COMM_WORLD);
    check_all(0);
    MPI_Barrier(MPI_COMM_WORLD);
    // A time is noted of what is written.
    struct stat before, after;
    struct timespec old[2] = {{1000, 0}, {1000, 0}};
    if (rank == 0) {
        CHECK_EQ(utimensat(AT_FDCWD, name, old, 0), 0);
        CHECK_EQ(stat(name, &before), 0);
        write_by(own, 0, ROUNDS - 1);
        CHECK_EQ(stat(name, &after), 0);
        CHECK(after.st_mtim.tv_sec > before.st_mtim.tv_sec);
    }
    cut(all);
    CHECK_EQ(MPI_File_close(&own), MPI_SUCCESS);
    CHECK_EQ(MPI_File_close(&all), MPI_SUCCESS);
    return finish();
}
