/* Spawns so many processes (the first argument) that run a command (the rest), so often one after the other (TURNS).
 * The command starts this program somehow, which then does what WHAT says. Commands are divided by "," into several. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONG = 100000, MOST = 8 };

static int rank, size;
static int out[LONG], in[LONG];
static volatile int *volatile nowhere = (volatile int *)8;

static int is(const char *word) {
    const char *what = getenv("WHAT");
    return what && strcmp(what, word) == 0;
}

static void demand(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "%s does not hold\n", what);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

/* Parents and children together. */
static void work(MPI_Comm between, int is_child) {
    MPI_Comm all;
    int me, count, sum, one = 1, parents, mine;
    MPI_Comm_remote_size(between, &parents);
    MPI_Comm_size(between, &mine);
    if (!is_child) parents = mine;
    MPI_Intercomm_merge(between, is_child, &all);
    MPI_Comm_rank(all, &me);
    MPI_Comm_size(all, &count);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    demand(sum == count, "the sum of ones");
    demand(is_child ? me >= parents : me < parents, "children come last");
    for (int i = 0; i < LONG; i++) out[i] = me * 7 + i;
    int left = (me + count - 1) % count;
    MPI_Sendrecv(out, LONG, MPI_INT, (me + 1) % count, 3, in, LONG, MPI_INT, left, 3, all, MPI_STATUS_IGNORE);
    for (int i = 0; i < LONG; i++) demand(in[i] == left * 7 + i, "a word of a long message");
    MPI_Comm_free(&all);
}

static void child(MPI_Comm parents, int argc, char **argv) {
    char place[4096] = "", line[8192];
    const char *name = getenv("W_A");
    int length = snprintf(line, sizeof line, "child %d of %d", rank, size);
    for (int i = 1; i < argc; i++) length += snprintf(line + length, sizeof line - length, " %s", argv[i]);
    if (getcwd(place, sizeof place) && name) snprintf(line + length, sizeof line - length, " A=%s in %s", name, place);
    puts(line);
    fflush(stdout);
    if (is("reads")) {
        char word[64] = "";
        demand(scanf("%63s", word) == 1, "a word of standard input");
        printf("child reads %s\n", word);
    }
    /* Places on the node are used again. */
    const char *own = getenv("PIP_EXEC_RANK");
    demand(own && strrchr(own, '/') && atoi(strrchr(own, '/') + 1) % 1024 < 100, "a place of those before");
    work(parents, 1);
    if (is("nested")) {
        char *words[] = {"WHAT=none", argv[0], "deeper", NULL};
        MPI_Comm between;
        MPI_Comm_spawn("env", words, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE);
        work(between, 0);
        MPI_Comm_disconnect(&between);
    }
    if (is("aborts") && rank == size - 1) MPI_Abort(MPI_COMM_WORLD, 7);
    if (is("crashes") && rank == size - 1) *nowhere = 1;
    if (is("leaves") && rank == size - 1) exit(0);
    if (is("is killed")) {
        /* Who kills it waits for this file. */
        FILE *file = fopen(argv[1], "w");
        if (file) fclose(file);
        MPI_Recv(in, 1, MPI_INT, 0, 99, parents, MPI_STATUS_IGNORE);
    }
    MPI_Comm_disconnect(&parents);
}

/* The commands that the words are, each with its arguments. */
static int divide(int count, char **words, char *commands[], char **lists[]) {
    int found = 0;
    for (int at = 0; at < count && found < MOST; at++) {
        commands[found] = words[at];
        lists[found] = words + at + 1;
        while (at < count && strcmp(words[at], ",") != 0) at++;
        words[at] = NULL;
        found++;
    }
    return found;
}

static int parent(int argc, char **argv) {
    char *commands[MOST], **lists[MOST];
    static int codes[2048];
    int counts[MOST], turns = getenv("TURNS") ? atoi(getenv("TURNS")) : 1;
    int found = divide(argc - 2, argv + 2, commands, lists);
    MPI_Info infos[MOST], info;
    MPI_Info_create(&info);
    if (getenv("W_DIR")) MPI_Info_set(info, "wdir", getenv("W_DIR"));
    if (getenv("W_ENV")) MPI_Info_set(info, "env", getenv("W_ENV"));
    if (getenv("W_HOST")) MPI_Info_set(info, "hosts", getenv("W_HOST"));
    for (int i = 0; i < found; i++) {
        counts[i] = atoi(argv[1]);
        infos[i] = info;
    }
    if (is("goes on") || is("is refused often")) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int turn = 0; turn < turns; turn++) {
        MPI_Comm between, over = is("apart") ? MPI_COMM_SELF : MPI_COMM_WORLD;
        int remote, class, length;
        int code = MPI_Comm_spawn_multiple(found, commands, lists, counts, infos, 0, over, &between, codes);
        if (code != MPI_SUCCESS && is("is refused often") && turn + 1 < turns) continue;
        if (code != MPI_SUCCESS) {
            char text[MPI_MAX_ERROR_STRING];
            MPI_Error_class(code, &class);
            MPI_Error_string(code, text, &length);
            printf("refused: %s: %s\n", class == MPI_ERR_SPAWN ? "MPI_ERR_SPAWN" : "another class", text);
            fflush(stdout);
            /* The next ones come. */
            MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE);
            work(between, 0);
            MPI_Comm_disconnect(&between);
            printf("parent %d goes on\n", rank);
            return 0;
        }
        MPI_Comm_remote_size(between, &remote);
        demand(remote == found * counts[0], "as many as were asked for");
        work(between, 0);
        MPI_Comm_disconnect(&between);
    }
    MPI_Info_free(&info);
    printf("parent %d ends\n", rank);
    return 0;
}

int main(int argc, char **argv) {
    MPI_Comm parents;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parents);
    if (parents != MPI_COMM_NULL) {
        child(parents, argc, argv);
    } else {
        parent(argc, argv);
    }
    MPI_Finalize();
    return parents != MPI_COMM_NULL && is("exits") && rank == size - 1 ? 3 : 0;
}
