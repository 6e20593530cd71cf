// How many processes are enough: the info key soft, its errors, and what the error codes say of each process.
//# ranks: 1 2
//# nodes: no
//# abi: mpich, mpi5, openmpi
//# progress: steal, none
#include "check.h"

static char *program;

static MPI_Info soft(const char *value) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "soft", value);
    return info;
}

/* Spawns up to `most` as `value` allows; each rank learns which there are. */
static void spawn(int most, const char *value, int expected) {
    static int codes[2000];
    MPI_Info info = soft(value);
    MPI_Comm children;
    for (int i = 0; i < most; i++) codes[i] = -1;
    MPI_Comm_spawn(program, MPI_ARGV_NULL, most, info, size - 1, MPI_COMM_WORLD, &children, codes);
    int count;
    MPI_Comm_remote_size(children, &count);
    CHECK_EQ(count, expected);
    for (int i = 0; i < most; i++) CHECK_EQ(class_of(codes[i]), i < expected ? MPI_SUCCESS : MPI_ERR_SPAWN);
    MPI_Barrier(children);
    MPI_Comm_disconnect(&children);
    MPI_Info_free(&info);
}

static void spawn_multiple(void) {
    char *commands[] = {program, program, program};
    int most[] = {4, 2, 3}, codes[9], expected[] = {0, 0, 0, 1, 0, 0, 1, 1, 1};
    MPI_Info infos[] = {soft("1:4:2"), MPI_INFO_NULL, soft("0,1000")};
    MPI_Comm children;
    int count;
    MPI_Comm_spawn_multiple(3, commands, MPI_ARGVS_NULL, most, infos, 0, MPI_COMM_WORLD, &children,
                            rank == 0 ? codes : MPI_ERRCODES_IGNORE);
    MPI_Comm_remote_size(children, &count);
    CHECK_EQ(count, 5);
    for (int i = 0; i < 9 && rank == 0; i++) CHECK_EQ(class_of(codes[i]), expected[i] ? MPI_ERR_SPAWN : MPI_SUCCESS);
    MPI_Barrier(children);
    MPI_Comm_disconnect(&children);
    MPI_Info_free(&infos[0]);
    MPI_Info_free(&infos[2]);
}

/* Neither is anything started, nor does it take a place. */
static void refuse(int most, const char *value, int expected) {
    MPI_Info info = soft(value);
    MPI_Comm children = MPI_COMM_WORLD;
    int code = MPI_Comm_spawn(program, MPI_ARGV_NULL, most, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    CHECK_EQ(class_of(code), expected);
    CHECK(children == MPI_COMM_NULL);
    MPI_Info_free(&info);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm parents;
    MPI_Comm_get_parent(&parents);
    if (parents != MPI_COMM_NULL) {
        int *number, flag;
        MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag);
        CHECK(flag && *number == (size == 5 && rank >= 3));
        MPI_Barrier(parents);
        MPI_Comm_disconnect(&parents);
        MPI_Finalize();
        return 0;
    }
    program = argv[0];
    spawn(3, "1,3", 3);
    spawn(4, "2,5:9", 2);
    spawn(4, "4:1:-2", 4);
    spawn(3, "-1, 2,4", 2);
    /* More than a node has room for. */
    spawn(2000, "2,1500:2000", 2);
    spawn_multiple();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    refuse(2, "many", MPI_ERR_INFO_VALUE);
    refuse(2, "1:2:0", MPI_ERR_INFO_VALUE);
    refuse(2, "3:9", MPI_ERR_INFO_VALUE);
    refuse(2000, "1500:2000", MPI_ERR_SPAWN);
    refuse(2, "0", MPI_ERR_SPAWN);
    spawn(1, "1", 1);
    return finish();
}
