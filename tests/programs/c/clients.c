// Clients of a port: a hundred in turn, ten that wait at once, and those that come too early or too late.
//# ranks: 2 11
//# abi: mpich, mpi5, openmpi
//# wait: auto, park
#include "check.h"

#define TURNS 100
#define ROUNDS 10

/* What a client and its server tell each other. */
static void exchange(MPI_Comm inter, int serves, int turn) {
    int out = serves ? -turn : rank * 1000 + turn, in = -1;
    MPI_Sendrecv(&out, 1, MPI_INT, 0, turn, &in, 1, MPI_INT, 0, MPI_ANY_TAG, inter, MPI_STATUS_IGNORE);
    if (serves) CHECK(in % 1000 == turn && in / 1000 >= 1 && in / 1000 < size);
    if (!serves) CHECK_EQ(in, -turn);
}

static void in_turn(const char *port) {
    MPI_Comm inter;
    for (int turn = 0; rank < 2 && turn < TURNS; turn++) {
        if (rank == 0) MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
        if (rank == 1) MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
        exchange(inter, rank == 0, turn);
        MPI_Comm_disconnect(&inter);
        CHECK(inter == MPI_COMM_NULL);
    }
}

/* The server keeps all of a round, and answers them together. */
static void at_once(const char *port) {
    MPI_Comm inter[64];
    int seen[64] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank > 0) {
            MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, inter);
            int in = -1;
            MPI_Send(&rank, 1, MPI_INT, 0, round, inter[0]);
            MPI_Recv(&in, 1, MPI_INT, 0, round, inter[0], MPI_STATUS_IGNORE);
            CHECK_EQ(in, rank * 7 + round);
            MPI_Comm_disconnect(inter);
            continue;
        }
        for (int client = 1; client < size; client++) {
            MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter[client]);
        }
        for (int client = size - 1; client > 0; client--) {
            int in = -1, out;
            MPI_Recv(&in, 1, MPI_INT, 0, round, inter[client], MPI_STATUS_IGNORE);
            CHECK(in > 0 && in < size);
            seen[in]++;
            out = in * 7 + round;
            MPI_Send(&out, 1, MPI_INT, 0, round, inter[client]);
            MPI_Comm_disconnect(&inter[client]);
        }
    }
    for (int client = 1; rank == 0 && client < size; client++) CHECK_EQ(seen[client], ROUNDS);
}

/* A server that ends: its port goes with it, for who waits there and for who comes later, and so does its name. */
static int server(MPI_Comm parents) {
    char port[MPI_MAX_PORT_NAME] = "";
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name("a server that ends", MPI_INFO_NULL, port);
        MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 1, parents);
    }
    MPI_Comm_disconnect(&parents);
    MPI_Finalize();
    return 0;
}

static void ended(char *program) {
    MPI_Comm servers, made = MPI_COMM_WORLD;
    char port[MPI_MAX_PORT_NAME] = "", other[MPI_MAX_PORT_NAME];
    MPI_Comm_spawn(program, MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &servers, MPI_ERRCODES_IGNORE);
    if (rank == 0) MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 1, servers, MPI_STATUS_IGNORE);
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Comm_disconnect(&servers);
    /* Before the server ends, or afterwards. */
    CHECK_EQ(class_of(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made)), MPI_ERR_PORT);
    CHECK(made == MPI_COMM_NULL);
    CHECK_EQ(class_of(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &made)), MPI_ERR_PORT);
    CHECK_EQ(class_of(MPI_Lookup_name("a server that ends", MPI_INFO_NULL, other)), MPI_ERR_NAME);
}

static void wrong_ports(void) {
    MPI_Comm made = MPI_COMM_WORLD;
    const char *names[] = {"", " ", "cohort-port:", "cohort-port:zz:1", "cohort-port:0000000000000001:1",
                           "tag#0$description#host$port#1$"};
    for (int name = 0; name < 6; name++) {
        CHECK_EQ(class_of(MPI_Comm_connect(names[name], MPI_INFO_NULL, 0, MPI_COMM_SELF, &made)), MPI_ERR_PORT);
        CHECK(made == MPI_COMM_NULL);
        CHECK_EQ(class_of(MPI_Comm_accept(names[name], MPI_INFO_NULL, 0, MPI_COMM_WORLD, &made)), MPI_ERR_PORT);
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm parents;
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm_get_parent(&parents);
    if (parents != MPI_COMM_NULL) return server(parents);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    in_turn(port);
    at_once(port);
    if (rank == 0) CHECK_EQ(MPI_Close_port(port), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm inter = MPI_COMM_WORLD;
    CHECK_EQ(class_of(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter)), MPI_ERR_PORT);
    CHECK(inter == MPI_COMM_NULL);
    wrong_ports();
    ended(argv[0]);
    return finish();
}
