/* The ranks of a job spawn one world on several nodes, as often as the first argument says. Each two arguments that
 * follow are the hosts of a command, "-" for none, and how many processes are to run it. The world says where it is: of
 * each rank, the number of its command and the first rank on its node. */
#include "together.h"
#include <stdlib.h>
#include <string.h>

enum { COMMANDS = 8, MOST = 2000 };

/* Of each rank of the world, where it is. */
static void tell_places(void) {
    MPI_Comm node;
    int rank, size, first, *number, flag, *all = NULL;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Allreduce(&rank, &first, 1, MPI_INT, MPI_MIN, node);
    MPI_Comm_free(&node);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag);
    int own[2] = {flag ? *number : -1, first};
    if (rank == 0) all = malloc(2 * size * sizeof *all);
    MPI_Gather(own, 2, MPI_INT, all, 2, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank != 0) return;
    char line[MOST] = "";
    for (int i = 0; i < size; i++) sprintf(line + strlen(line), " %d@%d", all[2 * i], all[2 * i + 1]);
    printf("world:%s\n", line);
    fflush(stdout);
    free(all);
}

static void join(MPI_Comm between, int is_child) {
    MPI_Comm all;
    MPI_Intercomm_merge(between, is_child, &all);
    exchange(all);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&between);
}

int main(int argc, char **argv) {
    MPI_Comm parents, between;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parents);
    if (parents != MPI_COMM_NULL) {
        tell_places();
        exchange(MPI_COMM_WORLD);
        join(parents, 1);
        MPI_Finalize();
        return 0;
    }
    int rank, commands = (argc - 2) / 2, counts[COMMANDS], remote, total = 0, codes[MOST], turns = atoi(argv[1]);
    char *programs[COMMANDS];
    MPI_Info infos[COMMANDS];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < commands; i++) {
        char *hosts = argv[2 + 2 * i];
        programs[i] = getenv("SPAWNED") ? getenv("SPAWNED") : argv[0];
        total += counts[i] = atoi(argv[3 + 2 * i]);
        MPI_Info_create(&infos[i]);
        if (strcmp(hosts, "-") != 0) MPI_Info_set(infos[i], "hosts", hosts);
    }
    int each = getenv("EACH") != NULL;
    MPI_Comm who = each ? MPI_COMM_SELF : MPI_COMM_WORLD;
    if (getenv("GO_ON")) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int turn = 0; turn < turns; turn++) {
        int code = MPI_Comm_spawn_multiple(commands, programs, MPI_ARGVS_NULL, counts, infos, 0, who, &between, codes);
        if (each) {
            MPI_Comm alone;
            MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, who, &alone, MPI_ERRCODES_IGNORE);
            join(alone, 0);
        }
        if (code != MPI_SUCCESS) {
            char text[MPI_MAX_ERROR_STRING];
            int length;
            MPI_Error_string(code, text, &length);
            if (rank == 0) printf("refused: %s\n", text);
            continue;
        }
        MPI_Comm_remote_size(between, &remote);
        demand(remote == total && codes[total - 1] == MPI_SUCCESS, "as many children as were asked for");
        join(between, 0);
    }
    for (int i = 0; i < commands; i++) MPI_Info_free(&infos[i]);
    int *universe, flag;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &flag);
    if (rank == 0) printf("spawned %d worlds over nodes, universe %d\n", turns, flag ? *universe : -1);
    MPI_Finalize();
    return 0;
}
