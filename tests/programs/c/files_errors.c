// What the system refuses in the midst of a call reaches every member, whatever form the call has; values that other
// machines cannot hold are refused too.
//# ranks: 1 3
//# abi: mpich mpi5 openmpi
//# stdout: passed
#include "check.h"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COUNT = 5000 };

static long out[COUNT];

/* A device that is always full. */
static void full(void) {
    MPI_File file;
    MPI_Status status;
    MPI_Request requests[2];
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &file), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_File_write_at(file, 0, out, COUNT, MPI_LONG, &status)), MPI_ERR_NO_SPACE);
    CHECK_EQ(class_of(MPI_File_write_at_all(file, 0, out, COUNT, MPI_LONG, &status)), MPI_ERR_NO_SPACE);
    CHECK_EQ(class_of(MPI_File_write_ordered(file, out, COUNT, MPI_LONG, &status)), MPI_ERR_NO_SPACE);
    CHECK_EQ(MPI_File_write_all_begin(file, out, COUNT, MPI_LONG), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_File_write_all_end(file, out, &status)), MPI_ERR_NO_SPACE);
    // Of one member only, all members hear.
    int count = rank == size - 1 ? COUNT : 0;
    CHECK_EQ(class_of(MPI_File_write_all(file, out, count, MPI_LONG, &status)), MPI_ERR_NO_SPACE);
    CHECK_EQ(MPI_File_iwrite_at(file, 0, out, COUNT, MPI_LONG, &requests[0]), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_Wait(&requests[0], &status)), MPI_ERR_NO_SPACE);
    // Beside one that goes well.
    MPI_Status statuses[2];
    MPI_File_iwrite_at(file, 0, out, COUNT, MPI_LONG, &requests[0]);
    MPI_Irecv(out, 0, MPI_INT, rank, 3, MPI_COMM_WORLD, &requests[1]);
    MPI_Send(out, 0, MPI_INT, rank, 3, MPI_COMM_WORLD);
    CHECK_EQ(class_of(MPI_Waitall(2, requests, statuses)), MPI_ERR_IN_STATUS);
    CHECK_EQ(class_of(statuses[0].MPI_ERROR), MPI_ERR_NO_SPACE);
    CHECK_EQ(class_of(statuses[1].MPI_ERROR), MPI_SUCCESS);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
}

/* A file that may not become so long. */
static void limited(const char *name) {
    MPI_File file;
    MPI_Status status;
    struct rlimit limit, old;
    getrlimit(RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = 1000 * sizeof(long);
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                           MPI_INFO_NULL, &file), MPI_SUCCESS);
    int code = MPI_File_write_at_all(file, (MPI_Offset)rank * COUNT * sizeof(long), out, COUNT, MPI_LONG, &status);
    CHECK_EQ(class_of(code), MPI_ERR_NO_SPACE);
    CHECK_EQ(class_of(MPI_File_set_size(file, 1 << 20)), MPI_ERR_NO_SPACE);
    // The beginning was written, and its length is told.
    int found = -1;
    code = MPI_File_write_at(file, 0, out, COUNT, MPI_LONG, &status);
    CHECK_EQ(class_of(code), MPI_ERR_NO_SPACE);
    MPI_Get_count(&status, MPI_LONG, &found);
    CHECK_EQ(found, 1000);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
}

/* Longs have four bytes there, the first of them the highest. */
static void portable(const char *name) {
    MPI_File file;
    MPI_Status status;
    long values[3] = {rank + 1, 2, 3}, got[4] = {0};
    unsigned char bytes[4];
    int found = -1;
    MPI_Aint extent = -1;
    char datarep[MPI_MAX_DATAREP_STRING];
    MPI_Offset displacement;
    MPI_Datatype etype, filetype;
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                           MPI_INFO_NULL, &file), MPI_SUCCESS);
    CHECK_EQ(MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL), MPI_SUCCESS);
    CHECK_EQ(MPI_File_get_view(file, &displacement, &etype, &filetype, datarep), MPI_SUCCESS);
    CHECK(etype == MPI_LONG && filetype == MPI_LONG && strcmp(datarep, "external32") == 0);
    CHECK_EQ(MPI_File_get_type_extent(file, MPI_LONG, &extent), MPI_SUCCESS);
    CHECK_EQ(extent, 4);
    CHECK_EQ(MPI_File_write_at_all(file, 3 * rank, values, 3, MPI_LONG, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_LONG, &found);
    CHECK_EQ(found, 3);
    CHECK_EQ(MPI_File_read_at_all(file, 3 * (size - 1) + 1, got, 4, MPI_LONG, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_LONG, &found);
    CHECK_EQ(found, 2);
    CHECK(got[0] == 2 && got[1] == 3 && got[2] == 0);
    values[0] = 1L << 40;
    CHECK_EQ(class_of(MPI_File_write_at(file, 3 * rank, values, 1, MPI_LONG, &status)), MPI_ERR_CONVERSION);
    CHECK_EQ(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), MPI_SUCCESS);
    CHECK_EQ(MPI_File_read_at(file, 12 * rank, bytes, 4, MPI_BYTE, &status), MPI_SUCCESS);
    CHECK(bytes[0] == 0 && bytes[3] == rank + 1);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
}

/* A program that closes all descriptors, as daemons do, and opens a file of its own: it is told, and its file stays as
   it was. */
static void closed(const char *name) {
    MPI_File file;
    MPI_Status status;
    char own[] = "/dev/shm/files-own-XXXXXX", got[4];
    CHECK_EQ(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_SUCCESS);
    int mine = mkstemp(own);
    CHECK_EQ(write(mine, "mine", 4), 4);
    struct stat wanted, found;
    CHECK_EQ(stat(name, &wanted), 0);
    for (int number = 3; number < 4096; number++)
        if (number != mine && fstat(number, &found) == 0 && found.st_ino == wanted.st_ino)
            CHECK_EQ(dup2(mine, number), number);
    CHECK_EQ(class_of(MPI_File_write_at(file, 0, out, 4, MPI_BYTE, &status)), MPI_ERR_FILE);
    CHECK_EQ(class_of(MPI_File_write_at_all(file, 0, out, 4, MPI_BYTE, &status)), MPI_ERR_FILE);
    CHECK_EQ(class_of(MPI_File_set_size(file, 0)), MPI_ERR_FILE);
    CHECK_EQ(class_of(MPI_File_close(&file)), MPI_ERR_FILE);
    CHECK(file == MPI_FILE_NULL);
    CHECK_EQ(pread(mine, got, 4, 0), 4);
    CHECK(memcmp(got, "mine", 4) == 0);
    close(mine);
    unlink(own);
    unlink(name);
}

/* The folder of a relative name, too: nothing is deleted in another one, and that stays open. */
static void closed_folder(void) {
    MPI_File file;
    char own[] = "/dev/shm/files-own-XXXXXX", other[] = "/dev/shm/files-other-XXXXXX", there[64];
    CHECK(mkdtemp(own) != NULL && mkdtemp(other) != NULL);
    snprintf(there, sizeof there, "%s/data", other);
    CHECK_EQ(close(creat(there, 0666)), 0);
    CHECK_EQ(chdir(own), 0);
    CHECK_EQ(MPI_File_open(MPI_COMM_SELF, "data", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                           MPI_INFO_NULL, &file), MPI_SUCCESS);
    struct stat wanted, found;
    int mine = open(other, O_RDONLY | O_DIRECTORY), taken = 0;
    CHECK_EQ(stat(own, &wanted), 0);
    for (int number = 3; number < 4096; number++)
        if (fstat(number, &found) == 0 && found.st_ino == wanted.st_ino && found.st_dev == wanted.st_dev)
            CHECK_EQ(dup2(mine, taken = number), number);
    CHECK(taken > 0);
    CHECK_EQ(class_of(MPI_File_close(&file)), MPI_ERR_FILE);
    CHECK(file == MPI_FILE_NULL);
    CHECK_EQ(fstat(taken, &found), 0);
    CHECK_EQ(unlink(there), 0);
    CHECK_EQ(unlink("data"), 0);
    close(mine);
    close(taken);
    CHECK_EQ(chdir("/dev/shm"), 0);
    CHECK(rmdir(own) == 0 && rmdir(other) == 0);
}

int main(int argc, char **argv) {
    char name[64];
    start(&argc, &argv);
    CHECK_EQ(chdir("/dev/shm"), 0);
    if (rank == 0) snprintf(name, sizeof name, "files-errors-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    full();
    limited(name);
    portable(name);
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(name, sizeof name, "files-closed-%d", (int)getpid());
    closed(name);
    closed_folder();
    return finish();
}
