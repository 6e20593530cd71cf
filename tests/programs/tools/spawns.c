/* Two ranks spawn two more, at the host SPAWN_AT if that is set; what happens then is the first argument. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static const char *what;
static int rank;
static pid_t root;
static volatile int *volatile nowhere = (volatile int *)8;

static int is(const char *word) { return strcmp(what, word) == 0; }

static void parent(char *program) {
    MPI_Comm children;
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    char *arguments[] = {(char *)what, pid, NULL};
    if (is("refused")) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
        program = "/no/such/program";
    }
    MPI_Info info;
    MPI_Info_create(&info);
    if (getenv("SPAWN_AT")) MPI_Info_set(info, "host", getenv("SPAWN_AT"));
    MPI_Comm_spawn(program, arguments, 2, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
    int got;
    if (strncmp(what, "parted", 6) == 0) {
        /* Goes on behind the child's end. */
        MPI_Recv(&got, 1, MPI_INT, rank, 0, children, MPI_STATUS_IGNORE);
        MPI_Comm_disconnect(&children);
        for (int turn = 0; turn < 9000 && kill(got, 0) == 0; turn++) usleep(5000);
        printf("parent %d goes on\n", rank);
    }
    if (is("hang")) MPI_Recv(&got, 1, MPI_INT, 0, 0, children, MPI_STATUS_IGNORE);
    if (is("port")) {
        char port[MPI_MAX_PORT_NAME];
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children);
    }
    if (is("parent exits") && rank == 0) exit(5);
    if (is("outlives")) {
        MPI_Comm_disconnect(&children);
        MPI_Finalize();
        printf("parent %d ends\n", rank);
        exit(0);
    }
}

/* Children spawn others at the host SPAWN_BACK. */
static void spawn_back(char *program) {
    MPI_Comm between;
    MPI_Info info;
    char *arguments[] = {"meets", NULL};
    MPI_Info_create(&info);
    MPI_Info_set(info, "host", getenv("SPAWN_BACK"));
    MPI_Comm_spawn(program, arguments, 1, info, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
    MPI_Barrier(between);
    printf("child %d has spawned\n", rank);
}

static void say(const char *text) {
    if (write(1, text, strlen(text)) < 0) exit(9);
}

/* One writes while the line of the other is begun. */
static void in_pieces(void) {
    for (int turn = 0; turn < 20; turn++) {
        if (rank == 0) say("a line ");
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) say("another\n");
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) say("in pieces\n");
    }
}

static void child(MPI_Comm parents, char *program) {
    int got = 0;
    if (is("aborts") && rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
    if (is("exits") && rank == 1) exit(3);
    if (is("crashes") && rank == 1) *nowhere = 1;
    if (is("hang")) MPI_Recv(&got, 1, MPI_INT, 0, 0, parents, MPI_STATUS_IGNORE);
    if (is("wrong rank")) MPI_Send(&got, 1, MPI_INT, 9, 0, parents);
    if (strncmp(what, "parted", 6) == 0) {
        int pid = (int)getpid(), count;
        MPI_Comm_remote_size(parents, &count);
        if (rank < count) MPI_Send(&pid, 1, MPI_INT, rank, 0, parents);
        MPI_Comm_disconnect(&parents);
        /* The worlds have parted when all ranks have. */
        MPI_Barrier(MPI_COMM_WORLD);
        if (is("parted aborts") && rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
        if (is("parted crashes") && rank == 1) *nowhere = 1;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Finalize();
        exit(rank == 1 ? 3 : 0);
    }
    if (is("outlives")) {
        MPI_Comm_disconnect(&parents);
        /* Until the root of the parents has ended, who does not wait for this. */
        for (int turn = 0; turn < 9000 && kill(root, 0) == 0; turn++) usleep(5000);
        if (kill(root, 0) == 0) exit(9);
        if (getenv("SPAWN_BACK")) spawn_back(program);
    }
    if (is("meets")) MPI_Barrier(parents);
    if (is("in pieces")) in_pieces();
    printf("child %d ends\n", rank);
}

int main(int argc, char **argv) {
    MPI_Comm parents;
    MPI_Init(&argc, &argv);
    what = argv[1];
    root = argc > 2 ? atoi(argv[2]) : 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parents);
    if (parents == MPI_COMM_NULL) {
        parent(argv[0]);
    } else {
        child(parents, argv[0]);
    }
    MPI_Finalize();
    return 0;
}
