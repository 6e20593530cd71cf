// Hints that act are told by MPI_File_get_info, and others are not; values without a meaning change nothing, and one
// line says so; members that hint otherwise where they must agree hear of that.
//# ranks: 2
//# abi: mpich mpi5 openmpi
//# stdout: passed
//# stderr: hint cb_buffer_size is "plenty", and takes a number from 1 up; used is 1
#include "check.h"
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char name[64];

// The value of a hint that is in force, or "-".
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

static MPI_Info one(const char *key, const char *value) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    return info;
}

// Data of two members in turns, written and read.
static void there_and_back(MPI_File file) {
    int out[64], in[64];
    MPI_Datatype turns;
    MPI_Status status;
    MPI_Type_vector(64, 1, 2, MPI_INT, &turns);
    MPI_Type_commit(&turns);
    for (int i = 0; i < 64; i++) out[i] = 1000 * rank + i;
    CHECK_EQ(MPI_File_set_view(file, rank * 4, MPI_INT, turns, "native", MPI_INFO_NULL), MPI_SUCCESS);
    CHECK_EQ(MPI_File_write_at_all(file, 0, out, 64, MPI_INT, &status), MPI_SUCCESS);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_set_view(file, (1 - rank) * 4, MPI_INT, turns, "native", MPI_INFO_NULL), MPI_SUCCESS);
    CHECK_EQ(MPI_File_read_at_all(file, 0, in, 64, MPI_INT, &status), MPI_SUCCESS);
    for (int i = 0; i < 64; i++) CHECK_EQ(in[i], 1000 * (1 - rank) + i);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Type_free(&turns);
}

/* A view with hints that differ is refused, and what was in force before stays. */
static void view_stays(MPI_File file, MPI_Info info) {
    MPI_Offset displacement = -1, at = -1;
    MPI_Datatype types[2];
    char representation[MPI_MAX_DATAREP_STRING];
    CHECK_EQ(MPI_File_set_view(file, 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_SUCCESS);
    CHECK_EQ(MPI_File_seek(file, 3, MPI_SEEK_SET), MPI_SUCCESS);
    CHECK_EQ(MPI_File_seek_shared(file, 5, MPI_SEEK_SET), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_File_set_view(file, 8, MPI_BYTE, MPI_BYTE, "native", info)), MPI_ERR_NOT_SAME);
    EXPECT("cb_buffer_size", "1");
    CHECK_EQ(MPI_File_get_view(file, &displacement, &types[0], &types[1], representation), MPI_SUCCESS);
    CHECK(displacement == 4 && types[0] == MPI_INT && types[1] == MPI_INT);
    CHECK_EQ(MPI_File_get_position(file, &at), MPI_SUCCESS);
    CHECK_EQ(at, 3);
    CHECK_EQ(MPI_File_get_position_shared(file, &at), MPI_SUCCESS);
    CHECK_EQ(at, 5);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK_EQ(chdir("/dev/shm"), 0);
    umask(022);
    if (rank == 0) snprintf(name, sizeof name, "files-hints-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_File file;
    MPI_Info info = one("cb_buffer_size", "1048576");
    MPI_Info_set(info, "file_perm", "660");
    MPI_Info_set(info, "cb_nodes", "1");
    MPI_Info_set(info, "romio_ds_write", "enable");
    MPI_Info_set(info, "unheard_of", "yes");
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, mode, info, &file), MPI_SUCCESS);
    MPI_Info_free(&info);
    struct stat found;
    CHECK_EQ(stat(name, &found), 0);
    CHECK_EQ(found.st_mode & 0777, 0640);
    EXPECT("file_perm", "660");
    EXPECT("cb_buffer_size", "1048576");
    EXPECT("filename", name);
    EXPECT("romio_ds_write", "disable");
    EXPECT("romio_cb_write", "automatic");
    EXPECT("cb_nodes", "-");
    EXPECT("unheard_of", "-");
    there_and_back(file);

    // Each member its own data.
    info = one("romio_cb_write", "disable");
    CHECK_EQ(MPI_File_set_info(file, info), MPI_SUCCESS);
    MPI_Info_free(&info);
    EXPECT("romio_cb_write", "disable");
    EXPECT("romio_cb_read", "automatic");
    EXPECT("cb_buffer_size", "1048576");
    there_and_back(file);
    info = one("collective_buffering", "false");
    CHECK_EQ(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", info), MPI_SUCCESS);
    MPI_Info_free(&info);
    EXPECT("romio_cb_read", "disable");
    there_and_back(file);

    // Too small, and then wrong.
    info = one("cb_buffer_size", "1");
    CHECK_EQ(MPI_File_set_info(file, info), MPI_SUCCESS);
    MPI_Info_set(info, "cb_buffer_size", "plenty");
    MPI_Info_set(info, "romio_cb_read", "enable");
    CHECK_EQ(MPI_File_set_info(file, info), MPI_SUCCESS);
    MPI_Info_free(&info);
    EXPECT("cb_buffer_size", "1");
    EXPECT("romio_cb_read", "enable");
    there_and_back(file);

    // Not the same: all hear of it, and nothing changes.
    info = one("cb_buffer_size", rank ? "4096" : "8192");
    CHECK_EQ(class_of(MPI_File_set_info(file, info)), MPI_ERR_NOT_SAME);
    EXPECT("cb_buffer_size", "1");
    view_stays(file, info);
    MPI_File other;
    CHECK_EQ(class_of(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, info, &other)), MPI_ERR_NOT_SAME);
    MPI_Info_free(&info);
    MPI_File_close(&file);
    return finish();
}
