// The failure of a read or write whose request was freed is told by the next sync, or else by the close, at all members
// and once; what went well, and what a request has told, is not.
//# ranks: 1 2
//# abi: mpich mpi5 openmpi
//# stdout: passed
#include "check.h"
#include <sys/resource.h>
#include <unistd.h>

enum { LIMIT = 1 << 20, LONG = 2 * LIMIT, SHORT = 4096 };
static char name[64], data[LONG];
static MPI_File file;

static void open_file(void) {
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), MPI_SUCCESS);
}

// The last rank writes at an offset, and frees the request.
static void write_unheard(MPI_Offset offset, int bytes) {
    if (rank < size - 1) return;
    MPI_Request request;
    CHECK_EQ(MPI_File_iwrite_at(file, offset, data, bytes, MPI_CHAR, &request), MPI_SUCCESS);
    CHECK_EQ(MPI_Request_free(&request), MPI_SUCCESS);
    CHECK(request == MPI_REQUEST_NULL);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK_EQ(chdir("/dev/shm"), 0);
    if (rank == 0) snprintf(name, sizeof name, "files-unheard-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    struct rlimit limit = {LIMIT, RLIM_INFINITY};
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);

    // By a thread, and in the call.
    for (int bytes = LONG; bytes >= SHORT; bytes -= LONG - SHORT) {
        open_file();
        write_unheard(LIMIT - SHORT / 2, bytes);
        CHECK_EQ(class_of(MPI_File_close(&file)), MPI_ERR_NO_SPACE);
        CHECK(file == MPI_FILE_NULL);
    }

    open_file();
    write_unheard(LIMIT, SHORT);
    CHECK_EQ(class_of(MPI_File_sync(file)), MPI_ERR_NO_SPACE);
    CHECK_EQ(MPI_File_sync(file), MPI_SUCCESS);
    write_unheard(0, LIMIT);
    MPI_Request request;
    MPI_Status status;
    CHECK_EQ(MPI_File_iwrite_at(file, LIMIT / 2, data, LONG, MPI_CHAR, &request), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_Wait(&request, &status)), MPI_ERR_NO_SPACE);
    CHECK_EQ(MPI_File_sync(file), MPI_SUCCESS);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    return finish();
}
