// Processes that start while the job runs: their worlds, parents, messages, collectives, windows, and errors.
//# ranks: 1 2 3
//# abi: mpich, mpi5, openmpi
//# progress: steal, none, thread
//# wait: auto, park
#include "check.h"

static int children_of(MPI_Comm inter) {
    int count;
    MPI_Comm_remote_size(inter, &count);
    return count;
}

/* What parents and children do together, over the communicator between them. */
static void work_together(MPI_Comm inter, int is_child) {
    MPI_Comm all;
    MPI_Intercomm_merge(inter, is_child, &all);
    int me, count;
    MPI_Comm_rank(all, &me);
    MPI_Comm_size(all, &count);
    CHECK_EQ(count, size + children_of(inter));
    CHECK(is_child ? me >= children_of(inter) : me < size);
    int sum, one = me + 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    CHECK_EQ(sum, count * (count + 1) / 2);
    /* Long messages around a ring, and a wildcard. */
    static int out[100000], in[100000];
    for (int i = 0; i < 100000; i++) out[i] = me * 7 + i;
    int left = (me + count - 1) % count;
    MPI_Request request;
    MPI_Irecv(in, 100000, MPI_INT, MPI_ANY_SOURCE, 3, all, &request);
    MPI_Send(out, 100000, MPI_INT, (me + 1) % count, 3, all);
    MPI_Status status;
    MPI_Wait(&request, &status);
    CHECK_EQ(status.MPI_SOURCE, left);
    for (int i = 0; i < 100000; i++) CHECK_EQ(in[i], left * 7 + i);
    /* A window. */
    int *base, got = -1;
    MPI_Win win;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, all, &base, &win);
    *base = 1000 + me;
    MPI_Win_fence(0, win);
    MPI_Get(&got, 1, MPI_INT, (me + 1) % count, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    CHECK_EQ(got, 1000 + (me + 1) % count);
    MPI_Win_free(&win);
    MPI_Comm part;
    MPI_Comm_split(all, me % 2, me, &part);
    MPI_Barrier(part);
    MPI_Comm_free(&part);
    MPI_Comm_free(&all);
    /* One group's to the other. */
    int root = is_child ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, told = is_child ? -1 : 77;
    MPI_Bcast(&told, 1, MPI_INT, root, inter);
    CHECK_EQ(told, 77);
}

static int universe(void) {
    int *count, flag;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &count, &flag);
    CHECK(flag);
    return *count;
}

static int child(MPI_Comm parent, int argc, char **argv) {
    CHECK(argc >= 2 && strcmp(argv[1], "child") == 0);
    void *number;
    int flag;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag);
    CHECK(flag);
    if (argc == 4) {
        /* Of two commands. */
        CHECK_EQ(*(int *)number, atoi(argv[2]));
        CHECK_EQ(size, atoi(argv[3]));
        CHECK_EQ(*(int *)number, rank == 0 ? 0 : 1);
    }
    CHECK_EQ(children_of(parent), argc == 3 ? atoi(argv[2]) : 1);
    if (argc == 3) work_together(parent, 1);
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    MPI_Comm_get_name(parent, name, &length);
    CHECK(strcmp(name, "MPI_COMM_PARENT") == 0);
    MPI_Comm_disconnect(&parent);
    MPI_Comm_get_parent(&parent);
    CHECK(parent == MPI_COMM_NULL);
    MPI_Finalize();
    return 0;
}

static void errors(const char *program) {
    MPI_Comm made = MPI_COMM_WORLD;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int refused = -1;
    int code = MPI_Comm_spawn("/no/such/program", MPI_ARGV_NULL, 1, MPI_INFO_NULL, size - 1, MPI_COMM_WORLD, &made,
                              &refused);
    CHECK_EQ(class_of(code), MPI_ERR_SPAWN);
    if (rank == size - 1) CHECK_EQ(class_of(refused), MPI_ERR_SPAWN);
    CHECK(made == MPI_COMM_NULL);
    code = MPI_Comm_spawn(program, MPI_ARGV_NULL, 1000000, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &made,
                          MPI_ERRCODES_IGNORE);
    CHECK_EQ(class_of(code), MPI_ERR_SPAWN);
    code = MPI_Comm_spawn(program, MPI_ARGV_NULL, -1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &made, MPI_ERRCODES_IGNORE);
    CHECK_EQ(class_of(code), MPI_ERR_ARG);
    code = MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, size, MPI_COMM_WORLD, &made, MPI_ERRCODES_IGNORE);
    CHECK_EQ(class_of(code), MPI_ERR_RANK);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm parent, inter;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) return child(parent, argc, argv);
    errors(argv[0]);
    int before = universe();
    CHECK(before >= size);

    char count[16];
    snprintf(count, sizeof count, "%d", size);
    char *arguments[] = {"child", count, NULL};
    int codes[2] = {-1, -1};
    MPI_Comm_spawn(argv[0], arguments, 2, MPI_INFO_NULL, size - 1, MPI_COMM_WORLD, &inter, codes);
    CHECK_EQ(codes[0], MPI_SUCCESS);
    CHECK_EQ(codes[1], MPI_SUCCESS);
    CHECK_EQ(children_of(inter), 2);
    work_together(inter, 0);
    MPI_Comm_disconnect(&inter);

    /* Each rank has children of its own, of two commands, in a folder and with a variable of theirs. */
    char *first[] = {"child", "0", "3", NULL}, *second[] = {"child", "1", "3", NULL};
    char *commands[] = {argv[0], argv[0]}, **lists[] = {first, second};
    int counts[] = {1, 2}, three[3] = {-1, -1, -1};
    MPI_Info info, infos[2];
    MPI_Info_create(&info);
    MPI_Info_set(info, "wdir", "/");
    infos[0] = info;
    infos[1] = MPI_INFO_NULL;
    MPI_Comm_spawn_multiple(2, commands, lists, counts, infos, 0, MPI_COMM_SELF, &inter, three);
    MPI_Info_free(&info);
    CHECK_EQ(three[0] + three[1] + three[2], 0);
    CHECK_EQ(children_of(inter), 3);
    MPI_Comm_disconnect(&inter);
    CHECK_EQ(universe(), before);
    return finish();
}
