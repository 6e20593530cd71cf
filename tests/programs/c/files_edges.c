// Names with prefixes, links, names that are too long, folders, pipes, devices, rights that are missing, descriptors
// that are at their end: what one member meets all hear of, nobody waits for ever, and nothing is kept of it.
//# ranks: 1 3
//# abi: mpich mpi5 openmpi
//# stdout: passed
#include "check.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RDWR = MPI_MODE_RDWR, MAKE = MPI_MODE_CREATE | MPI_MODE_RDWR };

static char folder[] = "/dev/shm/files-edges-XXXXXX";

static int code_of(const char *name, int mode) {
    MPI_File file = MPI_FILE_NULL;
    int code = MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file);
    if (code == MPI_SUCCESS) MPI_File_close(&file);
    CHECK(file == MPI_FILE_NULL);
    return class_of(code);
}

static MPI_File opened(const char *name, int mode) {
    MPI_File file = MPI_FILE_NULL;
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), MPI_SUCCESS);
    return file;
}

/* One member does what is about names, the others wait. */
#define BY_FIRST(what)                \
    do {                              \
        if (rank == 0) CHECK(what);   \
        MPI_Barrier(MPI_COMM_WORLD);  \
    } while (0)

static int exists(const char *name) { return access(name, F_OK) == 0; }

static void prefixes(void) {
    char whole[80], value[80];
    int found;
    snprintf(whole, sizeof whole, "nfs:%s/plain", folder);
    MPI_File file = opened("ufs:plain", MAKE);
    MPI_Info info;
    MPI_File_get_info(file, &info);
    MPI_Info_get(info, "filename", sizeof value - 1, value, &found);
    CHECK(found && strcmp(value, "plain") == 0);
    MPI_Info_free(&info);
    CHECK_EQ(MPI_File_write_at_all(file, 4 * rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    file = opened(whole, RDWR);
    MPI_Offset bytes;
    MPI_File_get_size(file, &bytes);
    CHECK_EQ(bytes, 4 * size);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    // Nothing but a prefix, and what only looks like one.
    CHECK_EQ(code_of("ufs:", RDWR), MPI_ERR_NO_SUCH_FILE);
    CHECK_EQ(code_of("", RDWR), MPI_ERR_NO_SUCH_FILE);
    file = opened("my:plain", MAKE);
    CHECK(exists("my:plain"));
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    BY_FIRST(MPI_File_delete(whole, MPI_INFO_NULL) == MPI_SUCCESS && !exists("plain"));
    BY_FIRST(MPI_File_delete("my:plain", MPI_INFO_NULL) == MPI_SUCCESS);
}

static void links(void) {
    BY_FIRST(symlink("target", "link") == 0 && symlink("link", "second") == 0 && symlink("loop", "loop") == 0);
    CHECK_EQ(code_of("link", RDWR), MPI_ERR_NO_SUCH_FILE);
    CHECK_EQ(code_of("link", MAKE | MPI_MODE_EXCL), MPI_ERR_FILE_EXISTS);
    CHECK(!exists("target"));
    CHECK_EQ(code_of("loop", MAKE), MPI_ERR_BAD_FILE);
    // What a dangling link names is made; by whichever name, it is one file.
    MPI_File file = opened("second", MAKE);
    CHECK(exists("target"));
    CHECK_EQ(MPI_File_write_at_all(file, 4 * rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    file = opened(rank == 0 ? "target" : "link", RDWR | MPI_MODE_DELETE_ON_CLOSE);
    int value = -1;
    CHECK_EQ(MPI_File_read_at_all(file, 4 * rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK_EQ(value, rank);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    CHECK(!exists("target"));
    MPI_Barrier(MPI_COMM_WORLD);
    // The link goes, and not what it names.
    file = opened("target", MAKE);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    file = opened("link", RDWR | MPI_MODE_DELETE_ON_CLOSE);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    struct stat there;
    CHECK(lstat("link", &there) != 0 && exists("target"));
    MPI_Barrier(MPI_COMM_WORLD);
    BY_FIRST(unlink("target") == 0 && unlink("second") == 0 && unlink("loop") == 0);
}

static void names(void) {
    static char long_name[5000];
    memset(long_name, 'x', sizeof long_name - 1);
    CHECK_EQ(code_of(long_name, MAKE), MPI_ERR_BAD_FILE);
    // One member only.
    CHECK_EQ(code_of(rank == size - 1 ? long_name : "short", MAKE), MPI_ERR_BAD_FILE);
    long_name[256] = 0;
    CHECK_EQ(code_of(long_name, MAKE), MPI_ERR_BAD_FILE);
    CHECK_EQ(class_of(MPI_File_delete(long_name, MPI_INFO_NULL)), MPI_ERR_BAD_FILE);
    long_name[255] = 0;
    CHECK_EQ(code_of(long_name, MAKE | MPI_MODE_DELETE_ON_CLOSE), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    if (size == 1) CHECK(!exists("short"));
    else BY_FIRST(unlink("short") == 0);
    BY_FIRST(mkdir("room", 0777) == 0);
    CHECK_EQ(code_of("room", MPI_MODE_RDONLY), MPI_ERR_BAD_FILE);
    CHECK_EQ(code_of("room", MAKE), MPI_ERR_BAD_FILE);
    CHECK_EQ(code_of("room/", MAKE), MPI_ERR_BAD_FILE);
    CHECK_EQ(code_of("room/none/x", MAKE), MPI_ERR_NO_SUCH_FILE);
    CHECK_EQ(code_of("room/x", MAKE), MPI_SUCCESS);
    CHECK_EQ(code_of("room/x/y", MAKE), MPI_ERR_BAD_FILE);
    CHECK_EQ(class_of(MPI_File_delete("room/x/y", MPI_INFO_NULL)), MPI_ERR_BAD_FILE);
    MPI_Barrier(MPI_COMM_WORLD);
    BY_FIRST(unlink("room/x") == 0 && rmdir("room") == 0);
}

/* The right to read and write, of all and of the last member. */
static void rights(void) {
    BY_FIRST(close(creat("secret", 0)) == 0);
    // Those of an administrator are not asked.
    int other = geteuid() == 0 ? 65534 : (int)geteuid();
    CHECK_EQ(seteuid(other), 0);
    CHECK_EQ(code_of("secret", MPI_MODE_RDONLY), MPI_ERR_ACCESS);
    CHECK_EQ(seteuid(getuid()), 0);
    if (getuid() == 0) {
        if (rank == size - 1) CHECK_EQ(seteuid(other), 0);
        CHECK_EQ(code_of("secret", RDWR), MPI_ERR_ACCESS);
        CHECK_EQ(seteuid(0), 0);
        CHECK_EQ(code_of("secret", RDWR), MPI_SUCCESS);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    BY_FIRST(unlink("secret") == 0);
}

static int descriptors(void) {
    int count = 0;
    DIR *open_ones = opendir("/proc/self/fd");
    while (readdir(open_ones)) count++;
    closedir(open_ones);
    return count;
}

/* The last member has no descriptor left. */
static void exhausted(void) {
    MPI_File file = opened("many", MAKE);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    struct rlimit limit, old;
    int before = descriptors();
    getrlimit(RLIMIT_NOFILE, &old);
    limit = old;
    int lowest = dup(0);
    close(lowest);
    limit.rlim_cur = lowest;
    if (rank == size - 1) CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_EQ(code_of("many", RDWR), MPI_ERR_IO);
    CHECK_EQ(code_of("many", MAKE | MPI_MODE_DELETE_ON_CLOSE), MPI_ERR_IO);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
    CHECK_EQ(descriptors(), before);
    file = opened("many", RDWR | MPI_MODE_DELETE_ON_CLOSE);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    CHECK_EQ(descriptors(), before);
}

/* What has no places in it is no file, and nobody waits for its other end. */
static void pipes(void) {
    BY_FIRST(mkfifo("pipe", 0666) == 0 && symlink("pipe", "to-pipe") == 0);
    CHECK_EQ(code_of("pipe", MPI_MODE_RDONLY), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_EQ(code_of("pipe", MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_EQ(code_of("to-pipe", MAKE), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_EQ(code_of(rank == size - 1 ? "pipe" : "/dev/null", RDWR), MPI_ERR_UNSUPPORTED_OPERATION);
    MPI_Barrier(MPI_COMM_WORLD);
    BY_FIRST(unlink("pipe") == 0 && unlink("to-pipe") == 0);
}

/* A device that takes all and has nothing. */
static void nothing(void) {
    static char data[100000];
    MPI_File file = opened("/dev/null", RDWR);
    MPI_Status status;
    MPI_Request request;
    MPI_Offset bytes = -1;
    int count = -1;
    CHECK_EQ(MPI_File_write_all(file, data, sizeof data, MPI_BYTE, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQ(count, sizeof data);
    CHECK_EQ(MPI_File_iread_at_all(file, 0, data, sizeof data, MPI_BYTE, &request), MPI_SUCCESS);
    CHECK_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQ(count, 0);
    CHECK_EQ(MPI_File_get_size(file, &bytes), MPI_SUCCESS);
    CHECK_EQ(bytes, 0);
    CHECK(MPI_File_set_size(file, 10) != MPI_SUCCESS);
    CHECK_EQ(MPI_File_sync(file), MPI_SUCCESS);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (rank == 0) CHECK(mkdtemp(folder) != NULL && chmod(folder, 0777) == 0);
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK_EQ(chdir(folder), 0);
    prefixes();
    links();
    names();
    rights();
    exhausted();
    pipes();
    nothing();
    MPI_Barrier(MPI_COMM_WORLD);
    BY_FIRST(rmdir(folder) == 0);
    return finish();
}
