// One name that means another file for another member is refused, on one node and between nodes, whether the file is
// there already or made; and nothing stays open.
//# ranks: 2 3
//# abi: mpi5
//# stdout: passed
#include "check.h"
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static int descriptors(void) {
    DIR *all = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(all)) count++;
    closedir(all);
    return count;
}

/* Opens what is called `x` in the working directory, which goes so. */
static void opens(int mode, int expected) {
    MPI_File file = MPI_FILE_NULL;
    int code = MPI_File_open(MPI_COMM_WORLD, "x", mode, MPI_INFO_NULL, &file);
    CHECK_EQ(class_of(code), expected);
    if (expected == MPI_SUCCESS) CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void make(const char *text) {
    FILE *made = fopen("x", "w");
    CHECK(made && fputs(text, made) >= 0);
    fclose(made);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (rank == 0) snprintf(folder, sizeof folder, "/dev/shm/files-elsewhere-%d", (int)getpid());
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) CHECK_EQ(mkdir(folder, 0700), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(chdir(folder), 0);
    opens(MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_SUCCESS);
    // The last rank lives elsewhere: the first one makes a file that is not there.
    int is_last = rank == size - 1;
    if (is_last) CHECK(mkdir("other", 0700) == 0 && chdir("other") == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    int before = descriptors();
    opens(MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_ERR_NO_SUCH_FILE);
    // Files that look alike.
    if (rank == 0 || is_last) make("abc");
    MPI_Barrier(MPI_COMM_WORLD);
    opens(MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_ERR_NOT_SAME);
    opens(MPI_MODE_RDONLY, MPI_ERR_NOT_SAME);
    // One that has just been made.
    if (rank == 0) unlink("x");
    MPI_Barrier(MPI_COMM_WORLD);
    opens(MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_ERR_NOT_SAME);
    CHECK_EQ(descriptors(), before);
    if (is_last) CHECK(unlink("x") == 0 && chdir("..") == 0 && rmdir("other") == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    // The same file again.
    opens(MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_SUCCESS);
    if (rank == 0) CHECK_EQ(rmdir(folder), 0);
    return finish();
}
