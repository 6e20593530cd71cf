/* One of two jobs that meet at a port, `serve FILE` of two ranks or `visit`. All ranks of the visitor flood rank 0 of
   the server, which calls MPI again when FILE is there. Rank 1 makes that file some seconds after a message has come,
   which was sent behind the flood. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(it) do { if (!(it)) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, #it); MPI_Abort(MPI_COMM_WORLD, 9); } } while (0)
#define COUNT 40
#define BYTES 60000
/* Longer than what the trial allows for a silent host. */
#define SECONDS 5

static char data[COUNT][BYTES];

static void serve(const char *file, int rank, MPI_Comm other) {
    int visitors;
    MPI_Comm_remote_size(other, &visitors);
    if (rank == 1) {
        MPI_Recv(data, 0, MPI_BYTE, 0, 1, other, MPI_STATUS_IGNORE);
        sleep(SECONDS);
        fclose(fopen(file, "w"));
        return;
    }
    while (access(file, F_OK) != 0) usleep(1000);
    for (int turn = 0; turn < COUNT; turn++)
        for (int from = 0; from < visitors; from++) {
            MPI_Recv(data[0], BYTES, MPI_BYTE, from, 0, other, MPI_STATUS_IGNORE);
            for (int at = 0; at < BYTES; at++) CHECK(data[0][at] == (char)(turn + from));
        }
    printf("all of the flood has come\n");
}

static void visit(int rank, MPI_Comm other) {
    MPI_Request requests[COUNT];
    for (int turn = 0; turn < COUNT; turn++) {
        memset(data[turn], turn + rank, BYTES);
        MPI_Isend(data[turn], BYTES, MPI_BYTE, 0, 0, other, &requests[turn]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) MPI_Send(data, 0, MPI_BYTE, 1, 1, other);
    MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv) {
    const char *name = "port of the flooded";
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm other;
    int rank, serves;
    MPI_Init(&argc, &argv);
    CHECK(argc > 1);
    serves = strcmp(argv[1], "serve") == 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (serves) {
        if (rank == 0) {
            MPI_Open_port(MPI_INFO_NULL, port);
            MPI_Publish_name(name, MPI_INFO_NULL, port);
        }
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
        serve(argv[2], rank, other);
    } else {
        if (rank == 0) {
            /* Whoever was started first: the server may not have come so far. */
            MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
            while (MPI_Lookup_name(name, MPI_INFO_NULL, port) != MPI_SUCCESS) usleep(2000);
        }
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
        visit(rank, other);
    }
    MPI_Comm_disconnect(&other);
    MPI_Finalize();
    return 0;
}
