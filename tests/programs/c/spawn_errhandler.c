// The error handler that a spawned world begins with: the info key mpi_initial_errhandler, and what is told of it.
//# ranks: 1 2
//# nodes: no
//# abi: mpich, mpi5, openmpi
//# settings: COHORT_INITIAL_ERRHANDLER=mpi_errors_abort
#include "check.h"

static void expect(MPI_Comm comm, MPI_Errhandler expected) {
    MPI_Errhandler handler;
    MPI_Comm_get_errhandler(comm, &handler);
    CHECK(handler == expected);
    MPI_Errhandler_free(&handler);
}

static void expect_name(const char *expected) {
    char name[MPI_MAX_INFO_VAL] = "";
    int flag;
    MPI_Info_get(MPI_INFO_ENV, "mpi_initial_errhandler", MPI_MAX_INFO_VAL - 1, name, &flag);
    CHECK(flag && strcmp(name, expected) == 0);
}

static int child(MPI_Comm parents, const char *name) {
    int returns = strcmp(name, "mpi_errors_return") == 0, aborts = strcmp(name, "mpi_errors_abort") == 0;
    MPI_Errhandler expected = returns ? MPI_ERRORS_RETURN : aborts ? MPI_ERRORS_ABORT : MPI_ERRORS_ARE_FATAL;
    expect(MPI_COMM_WORLD, expected);
    expect(MPI_COMM_SELF, expected);
    expect(parents, expected);
    expect_name(name);
    char ranks[MPI_MAX_INFO_VAL] = "";
    int flag;
    MPI_Info_get(MPI_INFO_ENV, "maxprocs", MPI_MAX_INFO_VAL - 1, ranks, &flag);
    CHECK(flag && atoi(ranks) == size);
    if (returns) {
        CHECK_EQ(class_of(MPI_Send(&size, 1, MPI_INT, 99, 0, parents)), MPI_ERR_RANK);
        CHECK_EQ(class_of(MPI_Send(&size, 1, MPI_INT, 99, 0, MPI_COMM_WORLD)), MPI_ERR_RANK);
        CHECK_EQ(class_of(MPI_Send(&size, 1, MPI_INT, 99, 0, MPI_COMM_SELF)), MPI_ERR_RANK);
        CHECK_EQ(class_of(MPI_Type_free(NULL)), MPI_ERR_ARG);
    }
    MPI_Barrier(parents);
    MPI_Comm_disconnect(&parents);
    MPI_Finalize();
    return 0;
}

static MPI_Info asks_for(const char *value) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_initial_errhandler", value);
    return info;
}

static void spawn(char *program, const char *value, char *name) {
    char *arguments[] = {name, NULL};
    MPI_Info info = value ? asks_for(value) : MPI_INFO_NULL;
    MPI_Comm children;
    MPI_Comm_spawn(program, arguments, 2, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Barrier(children);
    MPI_Comm_disconnect(&children);
    if (value) MPI_Info_free(&info);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm parents, children;
    MPI_Comm_get_parent(&parents);
    if (parents != MPI_COMM_NULL) return child(parents, argv[1]);
    expect(MPI_COMM_WORLD, MPI_ERRORS_ABORT);
    expect(MPI_COMM_SELF, MPI_ERRORS_ABORT);
    expect_name("mpi_errors_abort");
    spawn(argv[0], "mpi_errors_return", "mpi_errors_return");
    /* The second world takes the places of the first. */
    spawn(argv[0], "MPI_Errors_Are_Fatal", "mpi_errors_are_fatal");
    spawn(argv[0], NULL, "mpi_errors_abort");

    /* Each command has its own. */
    char *commands[] = {argv[0], argv[0]};
    char *first[] = {"mpi_errors_return", NULL}, *second[] = {"mpi_errors_abort", NULL};
    char **arguments[] = {first, second};
    int counts[] = {1, 1};
    MPI_Info infos[] = {asks_for("mpi_errors_return"), MPI_INFO_NULL};
    MPI_Comm_spawn_multiple(2, commands, arguments, counts, infos, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Barrier(children);
    MPI_Comm_disconnect(&children);
    MPI_Info_free(&infos[0]);

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Info unknown = asks_for("mpi_errors_shrug");
    int code = MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, unknown, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    CHECK_EQ(class_of(code), MPI_ERR_INFO_VALUE);
    MPI_Info_free(&unknown);
    return finish();
}
