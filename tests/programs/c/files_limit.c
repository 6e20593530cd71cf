// Beyond the limit of a file's size (RLIMIT_FSIZE) a write fails, at every member of a collective call, and no rank is
// ended by the signal; a program that handles the signal goes on to do so.
//# ranks: 2
//# abi: mpich mpi5 openmpi
//# stdout: passed
#include "check.h"
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LIMIT = 65536 };
static char name[64], data[2 * LIMIT];
static volatile sig_atomic_t signals;

static void count(int number) {
    (void)number;
    signals++;
}

static int is(void (*wanted)(int)) {
    struct sigaction now;
    sigaction(SIGXFSZ, NULL, &now);
    return now.sa_handler == wanted;
}

static void expect_refusal(int code) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    CHECK_EQ(class_of(code), MPI_ERR_NO_SPACE);
    MPI_Error_string(code, text, &length);
    CHECK(length > 0);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK_EQ(chdir("/dev/shm"), 0);
    if (rank == 0) snprintf(name, sizeof name, "files-limit-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    struct rlimit limit = {LIMIT, RLIM_INFINITY};
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    if (rank == 1) signal(SIGXFSZ, count);
    MPI_File file;
    MPI_Status status;
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, moved;
    CHECK(is(rank == 1 ? count : SIG_DFL));
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), MPI_SUCCESS);
    CHECK(is(rank == 1 ? count : SIG_IGN));

    // Up to the limit all is well; of what crosses it the part below is written.
    CHECK_EQ(MPI_File_write_at_all(file, rank * LIMIT / 2, data, LIMIT / 2, MPI_CHAR, &status), MPI_SUCCESS);
    expect_refusal(MPI_File_write_at(file, LIMIT - 4096, data, LIMIT, MPI_CHAR, &status));
    MPI_Get_count(&status, MPI_CHAR, &moved);
    CHECK_EQ(moved, 4096);
    CHECK_EQ(signals, rank);
    MPI_Barrier(MPI_COMM_WORLD);

    // One member writes beyond it: all hear of that.
    expect_refusal(MPI_File_write_at_all(file, rank * LIMIT, data, LIMIT, MPI_CHAR, &status));
    expect_refusal(MPI_File_set_size(file, 2 * LIMIT));
    MPI_Offset size;
    MPI_File_get_size(file, &size);
    CHECK_EQ(size, LIMIT);
    CHECK(is(rank == 1 ? count : SIG_IGN));
    MPI_File_close(&file);
    return finish();
}
