// One name that means another file for another member is refused, on one node and between nodes, whether the file is
// there already or made; and nothing stays open.
//# ranks: 2 3
//# abi: mpi5
//# stdout: passed
#define _GNU_SOURCE
#include "check.h"
#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

/* Descriptors of files below the folder: those of the network come at any time. */
static int descriptors(void) {
    DIR *all = opendir("/proc/self/fd");
    int count = 0;
    for (struct dirent *entry; (entry = readdir(all));) {
        char target[256] = {0};
        if (readlinkat(dirfd(all), entry->d_name, target, sizeof target - 1) > 0)
            count += strncmp(target, folder, strlen(folder)) == 0;
    }
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

/* Each of two ranks has a disk of its own, where the file has the same name, number and bytes. Needs the right to
   mount. */
static void disks(void) {
    int can = unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, all;
    MPI_Allreduce(&can, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!all || size > 2) return;
    CHECK_EQ(mount("none", folder, "tmpfs", 0, NULL), 0);
    CHECK_EQ(chdir(folder), 0);
    struct stat mine, first;
    if (rank == 0) make("abc");
    if (rank == 0) CHECK_EQ(stat("x", &first), 0);
    MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD);
    // Clocks of file systems tick some hundred times a second: at first both may be of one tick.
    for (int is_later = rank == 0; !is_later;) {
        struct stat probe;
        FILE *made = fopen(".tick", "w");
        CHECK(made && stat(".tick", &probe) == 0);
        fclose(made);
        is_later = probe.st_mtim.tv_nsec != first.st_mtim.tv_nsec;
        CHECK_EQ(unlink(".tick"), 0);
        if (is_later) {
            CHECK(umount2(folder, MNT_DETACH) == 0 && mount("none", folder, "tmpfs", 0, NULL) == 0);
            CHECK_EQ(chdir(folder), 0);
            make("abc");
        }
    }
    CHECK_EQ(stat("x", &mine), 0);
    CHECK_EQ(mine.st_ino, first.st_ino);
    opens(MPI_MODE_RDWR, MPI_ERR_NOT_SAME);
    CHECK(chdir("/") == 0 && umount2(folder, MNT_DETACH) == 0);
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
    disks();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) CHECK_EQ(rmdir(folder), 0);
    return finish();
}
