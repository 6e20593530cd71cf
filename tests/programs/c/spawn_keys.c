// Info keys of MPI_Comm_spawn: each changes what is run, or is refused; none is passed over.
//# ranks: 1 2
//# nodes: no
//# abi: mpich, mpi5, openmpi
#include "check.h"
#include <libgen.h>
#include <unistd.h>

static char *program;

static int spawn(char *command, const char *key, const char *value) {
    MPI_Info info;
    MPI_Comm children = MPI_COMM_WORLD;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    char *arguments[] = {(char *)key, (char *)value, NULL};
    int code = MPI_Comm_spawn(command, arguments, 1, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
    if (code == MPI_SUCCESS) {
        MPI_Barrier(children);
        MPI_Comm_disconnect(&children);
    } else {
        CHECK(children == MPI_COMM_NULL);
    }
    return class_of(code);
}

static void refused(const char *key, const char *value) { CHECK_EQ(spawn(program, key, value), MPI_ERR_SPAWN); }

static void taken(const char *key, const char *value) { CHECK_EQ(spawn(program, key, value), MPI_SUCCESS); }

static int child(MPI_Comm parents, const char *key, const char *value) {
    char folder[4096];
    if (strcmp(key, "wdir") == 0) CHECK(getcwd(folder, sizeof folder) && strcmp(folder, value) == 0);
    if (strcmp(key, "env") == 0) {
        CHECK(strcmp(getenv("SPAWN_KEYS_ONE"), "1 = one") == 0);
        CHECK(strcmp(getenv("SPAWN_KEYS_TWO"), "") == 0);
    } else {
        CHECK(getenv("SPAWN_KEYS_ONE") == NULL);
    }
    MPI_Barrier(parents);
    MPI_Comm_disconnect(&parents);
    MPI_Finalize();
    return 0;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm parents;
    MPI_Comm_get_parent(&parents);
    if (parents != MPI_COMM_NULL) return child(parents, argv[1], argv[2]);
    program = argv[0];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    taken("wdir", "/");
    refused("wdir", "/no/such/folder");
    taken("env", "SPAWN_KEYS_ONE=1 = one\nSPAWN_KEYS_TWO=\n");
    refused("env", "SPAWN_KEYS_ONE");
    refused("env", "=1");
    taken("host", "localhost");
    refused("host", "no-such-host.example");
    taken("arch", "x86_64");
    taken("arch", "AMD64");
    refused("arch", "sparc");
    refused("file", "/etc/hostname");
    char *folder = strdup(program), *name = strdup(program);
    CHECK_EQ(spawn(basename(name), "path", dirname(folder)), MPI_SUCCESS);
    free(folder);
    free(name);
    /* What MPI reserves for nobody is for other MPIs. */
    taken("no_such_key", "1");
    return finish();
}
