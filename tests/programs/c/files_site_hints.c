// Hints of the site are in a file that ROMIO_HINTS names: they are in force unless the program says otherwise, and
// what means nothing there is told once.
//# ranks: 1 2
//# abi: mpich mpi5 openmpi
//# settings: ROMIO_HINTS=site-hints
//# stdout: passed
//# stderr: ROMIO_HINTS of site-hints: hint romio_cb_read is "perhaps", and takes automatic, enable or disable
//# stderr: ROMIO_HINTS: hint site-hints is "alone", and takes a key and a value; used is nothing of it
//# stderr: No such file or directory: hint ROMIO_HINTS is "site-hints", and takes a file's name; used is no file
#include "check.h"
#include <sys/stat.h>
#include <unistd.h>

static const char site[] = "# what this site is for\n"
                           "\n"
                           "cb_buffer_size 131072\n"
                           "  romio_cb_write \t disable\n"
                           "romio_cb_read perhaps\n"
                           "alone\n"
                           "file_perm 640\r\n"
                           "striping_unit 1048576";

/* The value of a hint that is in force, or "-". */
static const char *in_force(MPI_File file, const char *key) {
    static char value[MPI_MAX_INFO_VAL + 1];
    MPI_Info info;
    int found;
    CHECK_EQ(MPI_File_get_info(file, &info), MPI_SUCCESS);
    MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
    MPI_Info_free(&info);
    return found ? value : "-";
}

#define EXPECT(key, wanted) CHECK_EQ(strcmp(in_force(file, key), wanted), 0)

static MPI_File opened(MPI_Info info) {
    MPI_File file;
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, "data", mode, info, &file), MPI_SUCCESS);
    return file;
}

int main(int argc, char **argv) {
    char folder[] = "/dev/shm/files-site-XXXXXX";
    start(&argc, &argv);
    if (rank == 0) {
        CHECK(mkdtemp(folder) != NULL);
        CHECK_EQ(chdir(folder), 0);
        FILE *hints = fopen("site-hints", "w");
        CHECK(hints != NULL && fputs(site, hints) >= 0 && fclose(hints) == 0);
    }
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK_EQ(chdir(folder), 0);
    umask(0);

    MPI_File file = opened(MPI_INFO_NULL);
    EXPECT("cb_buffer_size", "131072");
    EXPECT("romio_cb_write", "disable");
    EXPECT("romio_cb_read", "automatic");
    EXPECT("file_perm", "640");
    EXPECT("striping_unit", "-");
    struct stat found;
    CHECK_EQ(stat("data", &found), 0);
    CHECK_EQ(found.st_mode & 0777, 0640);
    CHECK_EQ(MPI_File_write_at_all(file, rank * 4, &rank, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);

    // The program's word is above the site's.
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", "65536");
    MPI_Info_set(info, "romio_cb_write", "enable");
    file = opened(info);
    EXPECT("cb_buffer_size", "65536");
    EXPECT("romio_cb_write", "enable");
    EXPECT("file_perm", "640");
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    MPI_Info_free(&info);

    // Without the file all is as ever.
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) CHECK_EQ(unlink("site-hints"), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    file = opened(MPI_INFO_NULL);
    EXPECT("cb_buffer_size", "16777216");
    EXPECT("romio_cb_write", "automatic");
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) CHECK_EQ(rmdir(folder), 0);
    return finish();
}
