/* The ranks of a job spawn so many processes at another node (the second argument names its host, the third says how
 * many), as often as the fourth says. The first argument is how many ranks of the job are on that node. */
#include "together.h"
#include <stdlib.h>
#include <string.h>

/* Parents and children together; `neighbours` of the parents live where the children do. */
static void work(MPI_Comm between, int is_child, int neighbours, int children) {
    MPI_Comm all, node;
    int size;
    MPI_Intercomm_merge(between, is_child, &all);
    exchange(all);
    MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &size);
    if (is_child) demand(size == neighbours + children, "children live with those of the other node");
    MPI_Comm_free(&node);
    MPI_Comm_free(&all);
}

static void child(MPI_Comm parents, char **argv) {
    int size, remote;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_remote_size(parents, &remote);
    demand(remote == atoi(argv[2]), "as many parents as there are");
    work(parents, 1, atoi(argv[1]), size);
    if (argv[3]) {
        /* And back: its children are neighbours of the others. */
        MPI_Comm between;
        MPI_Info info;
        char *words[] = {argv[4], argv[5], NULL};
        MPI_Info_create(&info);
        MPI_Info_set(info, "add-host", argv[3]);
        MPI_Comm_spawn(argv[0], words, 2, info, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE);
        MPI_Info_free(&info);
        /* None of these parents lives there. */
        work(between, 0, 0, 2);
        MPI_Comm_disconnect(&between);
    }
    MPI_Comm_disconnect(&parents);
}

int main(int argc, char **argv) {
    MPI_Comm parents, between;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parents);
    if (parents != MPI_COMM_NULL) {
        child(parents, argv);
        MPI_Finalize();
        return 0;
    }
    MPI_Info info;
    char size[16], count[16];
    int rank, ranks, children = atoi(argv[3]), remote, codes[64];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(size, sizeof size, "%d", ranks);
    snprintf(count, sizeof count, "%d", children);
    /* Those that a child spawns back live with nobody of it. */
    char *words[] = {argv[1], size, argc > 5 ? argv[5] : NULL, "0", count, NULL};
    MPI_Info_create(&info);
    if (rank == 0) MPI_Info_set(info, "host", argv[2]);
    for (int turn = 0; turn < atoi(argv[4]); turn++) {
        MPI_Comm_spawn(argv[0], words, children, info, 0, MPI_COMM_WORLD, &between, codes);
        MPI_Comm_remote_size(between, &remote);
        demand(remote == children && codes[children - 1] == MPI_SUCCESS, "as many children as were asked for");
        work(between, 0, atoi(argv[1]), children);
        MPI_Comm_disconnect(&between);
    }
    MPI_Info_free(&info);
    if (rank == 0) printf("spawned %s worlds there\n", argv[4]);
    MPI_Finalize();
    return 0;
}
