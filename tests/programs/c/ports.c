// Groups that meet at a port, by a published name, or by a socket.
//# ranks: 2 3 4
//# abi: mpich, mpi5, openmpi
//# wait: auto, park
#include "check.h"
#include <sys/socket.h>
#include <unistd.h>

/* The group with rank 0 accepts, the others connect, one group each. */
static void meet(void) {
    MPI_Comm half, inter;
    int serves = rank == 0, others;
    MPI_Comm_split(MPI_COMM_WORLD, serves, rank, &half);
    char port[MPI_MAX_PORT_NAME] = "";
    if (serves) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name("cohort trial", MPI_INFO_NULL, port);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Lookup_name("cohort trial", MPI_INFO_NULL, port);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
    }
    MPI_Comm_remote_size(inter, &others);
    CHECK_EQ(others, serves ? size - 1 : 1);
    int sum = 0, mine = rank + 1, expected = serves ? size * (size + 1) / 2 - 1 : 1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK_EQ(sum, expected);
    MPI_Comm_disconnect(&inter);
    MPI_Barrier(MPI_COMM_WORLD);
    /* Clients one by one, all of them waiting at once. */
    for (int client = 1; client < size; client++) {
        if (serves) {
            int who = -1;
            MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
            MPI_Recv(&who, 1, MPI_INT, 0, 5, inter, MPI_STATUS_IGNORE);
            CHECK(who >= 1 && who < size);
            MPI_Comm_disconnect(&inter);
        } else if (client == 1) {
            MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
            MPI_Send(&rank, 1, MPI_INT, 0, 5, inter);
            MPI_Comm_disconnect(&inter);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (serves) {
        MPI_Unpublish_name("cohort trial", MPI_INFO_NULL, port);
        MPI_Close_port(port);
    }
    MPI_Comm_free(&half);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void errors(void) {
    MPI_Comm made = MPI_COMM_WORLD;
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK_EQ(class_of(MPI_Lookup_name("nobody's", MPI_INFO_NULL, port)), MPI_ERR_NAME);
    CHECK_EQ(class_of(MPI_Unpublish_name("nobody's", MPI_INFO_NULL, "x")), MPI_ERR_SERVICE);
    CHECK_EQ(class_of(MPI_Comm_connect("nonsense", MPI_INFO_NULL, 0, MPI_COMM_SELF, &made)), MPI_ERR_PORT);
    CHECK(made == MPI_COMM_NULL);
    CHECK_EQ(class_of(MPI_Comm_accept("cohort-port:0000000000000001:1", MPI_INFO_NULL, 0, MPI_COMM_SELF, &made)),
             MPI_ERR_PORT);
    CHECK_EQ(class_of(MPI_Open_port(MPI_INFO_NULL, port)), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_Close_port(port)), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made)), MPI_ERR_PORT);
    CHECK_EQ(class_of(MPI_Close_port(port)), MPI_ERR_PORT);
    /* Who waits at a port that is closed hears of it. */
    char shared[MPI_MAX_PORT_NAME] = "";
    if (rank == 0) MPI_Open_port(MPI_INFO_NULL, shared);
    MPI_Bcast(shared, sizeof shared, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        usleep(20000);
        MPI_Close_port(shared);
    } else {
        CHECK_EQ(class_of(MPI_Comm_connect(shared, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made)), MPI_ERR_PORT);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Ranks 0 and 1 by a socket, which rank 0 has under a name. */
static void join(void) {
    int ends[2] = {-1, -1}, got = -1;
    if (rank > 1) return;
    char path[108];
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    memset(&address, 0, sizeof address);
    address.ss_family = AF_UNIX;
    int own = socket(AF_UNIX, SOCK_STREAM, 0);
    if (rank == 0) {
        CHECK(bind(own, (struct sockaddr *)&address, sizeof(sa_family_t)) == 0 && listen(own, 1) == 0);
        CHECK(getsockname(own, (struct sockaddr *)&address, &length) == 0);
        memcpy(path, &address, length);
        MPI_Send(path, (int)length, MPI_BYTE, 1, 9, MPI_COMM_WORLD);
        ends[0] = accept(own, NULL, NULL);
    } else {
        MPI_Status status;
        int count;
        MPI_Recv(path, sizeof path, MPI_BYTE, 0, 9, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        memcpy(&address, path, (size_t)count);
        CHECK(connect(own, (struct sockaddr *)&address, (socklen_t)count) == 0);
        ends[0] = own;
    }
    CHECK(ends[0] >= 0);
    MPI_Comm inter;
    MPI_Comm_join(ends[0], &inter);
    CHECK(inter != MPI_COMM_NULL);
    MPI_Sendrecv(&rank, 1, MPI_INT, 0, 1, &got, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE);
    CHECK_EQ(got, 1 - rank);
    MPI_Comm_disconnect(&inter);
}

/* What a socket says to MPI_Comm_join when `said` has come by it, and its other end is closed or not. */
static int joined(const void *said, size_t length, int closes) {
    int ends[2], code;
    MPI_Comm made = MPI_COMM_WORLD;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    CHECK(write(ends[1], said, length) == (ssize_t)length);
    if (closes) close(ends[1]);
    code = MPI_Comm_join(ends[0], &made);
    CHECK(made == MPI_COMM_NULL);
    close(ends[0]);
    if (!closes) close(ends[1]);
    return class_of(code);
}

/* Other ends that are no process of the job. */
static void strangers(void) {
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm made;
    unsigned long long words[4] = {0x006e696f6a2d636f, 0, 0, 9};
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Close_port(port);
    sscanf(port, "cohort-port:%llx", &words[1]);
    CHECK_EQ(joined("", 0, 1), MPI_ERR_OTHER);
    CHECK_EQ(joined("G", 1, 0), MPI_ERR_OTHER);
    CHECK_EQ(joined("GET / HTTP/1.1\r\nHost: everywhere\r\n\r\n", 37, 0), MPI_ERR_OTHER);
    CHECK_EQ(joined(words, 11, 1), MPI_ERR_OTHER);
    /* Ranks that the job does not have, or cannot have; itself; a process of another job. */
    unsigned long long wrong[] = {(unsigned long long)size, 100000, 0xffffffff, 1ull << 32, ~0ull};
    for (size_t which = 0; which < sizeof wrong / sizeof wrong[0]; which++) {
        words[2] = wrong[which];
        CHECK_EQ(joined(words, sizeof words, 0), MPI_ERR_OTHER);
    }
    words[2] = (unsigned long long)rank;
    CHECK_EQ(joined(words, sizeof words, 0), MPI_ERR_COMM);
    words[2] = 0, words[3] = ~0ull;
    CHECK_EQ(joined(words, sizeof words, 0), MPI_ERR_OTHER);
    /* It says that it is of another job, and no more. */
    words[1]++;
    CHECK_EQ(joined(words, sizeof words, 1), MPI_ERR_OTHER);
    /* No sockets at all. */
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    CHECK_EQ(class_of(MPI_Comm_join(pipes[1], &made)), MPI_ERR_OTHER);
    CHECK_EQ(class_of(MPI_Comm_join(-1, &made)), MPI_ERR_OTHER);
    CHECK_EQ(class_of(MPI_Comm_join(9999, &made)), MPI_ERR_OTHER);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    meet();
    join();
    errors();
    strangers();
    return finish();
}
