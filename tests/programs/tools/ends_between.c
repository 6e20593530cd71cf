/* Two worlds of two ranks each: ARGUMENTS: WHO ends, in which WAY, while the others wait for it in which CALL. Those
   of the second world are children, who share nothing with their parents but a window or a file in `fence` and
   `write`; `server` and `client` have parted, and meet at a port of rank 1 of the first world, `far server` and `far
   client` at one of rank 1 of the second. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *who, *way, *call;
static int rank;
static volatile int *volatile nowhere = (volatile int *)8;

static int is(const char *word, const char *other) { return strcmp(word, other) == 0; }

static void end(void) {
    if (is(way, "exit")) exit(3);
    if (is(way, "leave")) _exit(0);
    if (is(way, "abort")) MPI_Abort(MPI_COMM_WORLD, 7);
    if (is(way, "signal")) abort();
    if (is(way, "crash")) *nowhere = 1;
    if (is(way, "kill")) kill(getpid(), SIGKILL);
    if (is(way, "finalize")) {
        MPI_Finalize();
        exit(0);
    }
    exit(99);
}

/* Leaves the two worlds with a window or a file only, in which those wait who do not end. */
static void share(MPI_Comm other, int is_child, int ends) {
    MPI_Comm merged;
    MPI_Win win;
    MPI_File file;
    static int word;
    int fences = is(call, "fence");
    MPI_Intercomm_merge(other, is_child, &merged);
    if (fences) MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, merged, &win);
    else MPI_File_open(merged, getenv("FILE"), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_Comm_disconnect(&merged);
    MPI_Comm_disconnect(&other);
    MPI_Barrier(MPI_COMM_WORLD);
    if (ends) end();
    if (fences) MPI_Win_fence(0, win);
    else MPI_File_write_all(file, &word, 1, MPI_INT, MPI_STATUS_IGNORE);
    printf("%s returned\n", call);
}

/* What rank 1 of the other side does not answer. */
static void await(MPI_Comm other) {
    MPI_Comm merged;
    int got;
    if (is(call, "merge")) MPI_Intercomm_merge(other, 0, &merged);
    if (is(call, "disconnect")) MPI_Comm_disconnect(&other);
    if (is(call, "receive")) MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 0, other, MPI_STATUS_IGNORE);
    if (is(call, "probe")) MPI_Probe(1, MPI_ANY_TAG, other, MPI_STATUS_IGNORE);
    if (is(call, "barrier")) MPI_Barrier(other);
    printf("%s returned\n", call);
}

static void related(MPI_Comm other, int is_child) {
    int ends = is(who, "child") == is_child && rank == 1;
    if (is(call, "fence") || is(call, "write")) {
        share(other, is_child, ends);
        return;
    }
    if (ends) end();
    await(other);
}

/* The clients do not know each other. */
static void serve(const char *port, int ends) {
    MPI_Comm client;
    if (ends && is(call, "connect")) end();
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &client);
    if (ends) end();
    await(client);
}

static void visit(const char *port, int ends) {
    MPI_Comm server;
    if (ends && is(call, "accept")) end();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int code = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &server);
    if (code != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(code, text, &length);
        printf("connect failed: %s\n", text);
        return;
    }
    if (ends) end();
    int got;
    MPI_Recv(&got, 1, MPI_INT, 0, 0, server, MPI_STATUS_IGNORE);
    printf("receive returned\n");
}

/* Rank 1 of each world takes part. */
static void apart(MPI_Comm other, int is_child) {
    char port[MPI_MAX_PORT_NAME];
    int far = strncmp(who, "far", 3) == 0, is_server = far == is_child;
    int ends = (strstr(who, "server") != NULL) == is_server;
    if (rank == 1 && is_server) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 1, 0, other);
    }
    if (rank == 1 && !is_server) MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 1, 0, other, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&other);
    /* The worlds have parted when all have. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) (is_server ? serve : visit)(port, ends);
}

int main(int argc, char **argv) {
    MPI_Comm other;
    MPI_Init(&argc, &argv);
    who = argv[1], way = argv[2], call = argv[3];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&other);
    int is_child = other != MPI_COMM_NULL;
    if (!is_child) {
        MPI_Comm_spawn(argv[0], argv + 1, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
    }
    (is(who, "child") || is(who, "parent") ? related : apart)(other, is_child);
    MPI_Finalize();
    return 0;
}
