// Files are opened and closed together, know their modes, sizes, group, hints and error handler; one member's failure
// is everybody's.
//# ranks: 1 3
//# abi: mpich mpi5 openmpi
//# stdout: passed
#include "check.h"
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static char name[64];

/* Opens the file, which must go well. */
static MPI_File opened(MPI_Comm comm, int mode) {
    MPI_File file = MPI_FILE_NULL;
    CHECK_EQ(MPI_File_open(comm, name, mode, MPI_INFO_NULL, &file), MPI_SUCCESS);
    CHECK(file != MPI_FILE_NULL);
    return file;
}

/* Opens the file, which must fail so. */
static void refused(const char *path, int mode, int expected) {
    MPI_File file = MPI_FILE_NULL;
    CHECK_EQ(class_of(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file)), expected);
    CHECK(file == MPI_FILE_NULL);
}

static void modes(void) {
    const int all = MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR;
    MPI_File file = opened(MPI_COMM_WORLD, all);
    int mode = 0;
    MPI_File_get_amode(file, &mode);
    CHECK_EQ(mode, all);
    MPI_Offset bytes = -1;
    MPI_File_get_size(file, &bytes);
    CHECK_EQ(bytes, 0);
    CHECK_EQ(MPI_File_set_size(file, 100), MPI_SUCCESS);
    MPI_File_get_size(file, &bytes);
    CHECK_EQ(bytes, 100);
    CHECK_EQ(MPI_File_preallocate(file, 5000), MPI_SUCCESS);
    MPI_File_get_size(file, &bytes);
    CHECK_EQ(bytes, 5000);
    CHECK_EQ(MPI_File_preallocate(file, 50), MPI_SUCCESS);
    MPI_File_get_size(file, &bytes);
    CHECK_EQ(bytes, 5000);
    CHECK_EQ(class_of(MPI_File_set_size(file, -1)), MPI_ERR_ARG);
    CHECK_EQ(MPI_File_sync(file), MPI_SUCCESS);
    if (size > 1) CHECK_EQ(class_of(MPI_File_set_size(file, 10 + rank)), MPI_ERR_NOT_SAME);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    CHECK(file == MPI_FILE_NULL);
    refused(name, all, MPI_ERR_FILE_EXISTS);
    refused(name, MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_ERR_AMODE);
    refused(name, MPI_MODE_RDONLY | MPI_MODE_RDWR, MPI_ERR_AMODE);
    refused(name, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, MPI_ERR_AMODE);
    refused(name, 0, MPI_ERR_AMODE);
    refused("/none/x", MPI_MODE_RDONLY, MPI_ERR_NO_SUCH_FILE);
    refused("/tmp", MPI_MODE_RDONLY, MPI_ERR_BAD_FILE);
    if (size > 1) refused(name, rank == 1 ? MPI_MODE_RDONLY : MPI_MODE_RDWR, MPI_ERR_NOT_SAME);
    // Somewhere else for one member.
    if (size > 1) refused(rank == 1 ? "/none/x" : name, MPI_MODE_RDONLY, MPI_ERR_NO_SUCH_FILE);
    if (size > 1) refused(rank == 1 ? "/dev/null" : name, MPI_MODE_RDONLY, MPI_ERR_NOT_SAME);
    file = opened(MPI_COMM_WORLD, MPI_MODE_RDONLY);
    CHECK_EQ(class_of(MPI_File_set_size(file, 10)), MPI_ERR_READ_ONLY);
    MPI_File_close(&file);
}

static volatile int rung;
static void ring(int number) {
    (void)number;
    rung++;
}

/* Room is taken also while signals come again and again; tmpfs of older kernels gives back what it had then. */
static void interrupted(void) {
    const MPI_Offset wanted = 64 << 20;
    MPI_Offset bytes = -1;
    struct sigaction action = {.sa_handler = ring, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    MPI_File file = opened(MPI_COMM_WORLD, MPI_MODE_RDWR);
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
    CHECK_EQ(MPI_File_preallocate(file, wanted), MPI_SUCCESS);
    CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
    MPI_File_get_size(file, &bytes);
    CHECK_EQ(bytes, wanted);
    struct stat found;
    CHECK_EQ(stat(name, &found), 0);
    CHECK(found.st_blocks * 512L >= wanted);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_set_size(file, 0), MPI_SUCCESS);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
}

static int heard;
static MPI_File heard_of;
static void hear(MPI_File *file, int *code, ...) {
    heard_of = *file;
    heard = class_of(*code);
}

static void handlers(void) {
    MPI_Errhandler own, found;
    MPI_File_create_errhandler(hear, &own);
    MPI_File file = opened(MPI_COMM_WORLD, MPI_MODE_RDONLY);
    MPI_File_get_errhandler(file, &found);
    CHECK(found == MPI_ERRORS_RETURN);
    MPI_File_set_errhandler(file, own);
    CHECK_EQ(class_of(MPI_File_write(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE)), MPI_ERR_READ_ONLY);
    CHECK_EQ(heard, MPI_ERR_READ_ONLY);
    CHECK(heard_of == file);
    heard = 0;
    MPI_File_call_errhandler(file, MPI_ERR_IO);
    CHECK_EQ(heard, MPI_ERR_IO);
    MPI_File_close(&file);
    // New files inherit that of no file, which hears of what cannot be opened.
    MPI_File_set_errhandler(MPI_FILE_NULL, own);
    refused("/none/x", MPI_MODE_RDONLY, MPI_ERR_NO_SUCH_FILE);
    CHECK_EQ(heard, MPI_ERR_NO_SUCH_FILE);
    CHECK(heard_of == MPI_FILE_NULL);
    file = opened(MPI_COMM_SELF, MPI_MODE_RDONLY);
    CHECK_EQ(class_of(MPI_File_write(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE)), MPI_ERR_READ_ONLY);
    CHECK_EQ(heard, MPI_ERR_READ_ONLY);
    CHECK(heard_of == file);
    MPI_File_close(&file);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&own);
}

static void objects(void) {
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &part);
    MPI_File file = opened(part, MPI_MODE_RDWR);
    MPI_Group group, same;
    int answer;
    MPI_File_get_group(file, &group);
    MPI_Comm_group(part, &same);
    // The file does not need the communicator any more.
    MPI_Comm_free(&part);
    MPI_Group_compare(group, same, &answer);
    CHECK_EQ(answer, MPI_IDENT);
    MPI_Group_free(&group);
    MPI_Group_free(&same);
    MPI_Info info;
    CHECK_EQ(MPI_File_get_info(file, &info), MPI_SUCCESS);
    CHECK_EQ(MPI_File_set_info(file, info), MPI_SUCCESS);
    MPI_Info_free(&info);
    int flag = 7;
    MPI_File_get_atomicity(file, &flag);
    CHECK_EQ(flag, 0);
    CHECK_EQ(MPI_File_set_atomicity(file, 1), MPI_SUCCESS);
    MPI_File_get_atomicity(file, &flag);
    CHECK_EQ(flag, 1);
    CHECK(MPI_File_f2c(MPI_File_c2f(file)) == file);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_File_close(&file)), MPI_ERR_FILE);
    // Many at once.
    MPI_File many[64];
    for (int index = 0; index < 64; index++) many[index] = opened(MPI_COMM_WORLD, MPI_MODE_RDWR);
    for (int index = 0; index < 64; index++) CHECK_EQ(MPI_File_close(&many[index]), MPI_SUCCESS);
}

static void deleting(void) {
    // The program may go elsewhere before it closes the file.
    char folder[64], prefixed[80];
    snprintf(prefixed, sizeof prefixed, "ufs:%s", name);
    snprintf(folder, sizeof folder, "/tmp");
    MPI_File file;
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, prefixed, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file),
             MPI_SUCCESS);
    CHECK_EQ(chdir(folder), 0);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    refused(name, MPI_MODE_RDONLY, MPI_ERR_NO_SUCH_FILE);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(class_of(MPI_File_delete("/none/x", MPI_INFO_NULL)), MPI_ERR_NO_SUCH_FILE);
    // One member has no place for the handle.
    MPI_File *place = rank == size - 1 ? NULL : &file;
    const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
    CHECK_EQ(class_of(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, place)), MPI_ERR_ARG);
    CHECK(file == MPI_FILE_NULL);
    // Another process may have this number later.
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) unlink(name);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK_EQ(chdir("/dev/shm"), 0);
    if (rank == 0) snprintf(name, sizeof name, "files-open-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    modes();
    interrupted();
    handlers();
    objects();
    deleting();
    return finish();
}
