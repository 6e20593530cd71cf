// Two jobs that survive failures meet at a port, and one loses ranks, or all.
//   survive_jobs serve|visit HOW: the job that serves has two ranks, and so has the one that visits.
// `receive`, `send`, `reduce`, `any`: the visitors die, while the servers are in that. `one`: one visitor dies.
// `server`: one server does. `revoke`: nobody dies. Each time a visitor comes afterwards whom all serve well.
// `late`: one server dies before anybody comes.
#include "../c/check.h"
#include "../c/survival.h"
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
enum { LONG = 1 << 20 };
static char data[LONG], port[MPI_MAX_PORT_NAME];
static int serves;

static int is(const char *word, const char *other) { return strcmp(word, other) == 0; }

static void meet(MPI_Comm *other, MPI_Comm *all) {
    if (serves) {
        CHECK_EQ(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, other), MPI_SUCCESS);
    } else {
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        while (rank == 0 && MPI_Lookup_name("survivors", MPI_INFO_NULL, port) != MPI_SUCCESS) usleep(2000);
        int code = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, other), length;
        char text[MPI_MAX_ERROR_STRING];
        MPI_Error_string(code, text, &length);
        if (code != MPI_SUCCESS) fprintf(stderr, "%s\n", text);
        CHECK_EQ(code, MPI_SUCCESS);
    }
    MPI_Comm_set_errhandler(*other, MPI_ERRORS_RETURN);
    CHECK_EQ(MPI_Intercomm_merge(*other, !serves, all), MPI_SUCCESS);
    MPI_Comm_set_errhandler(*all, MPI_ERRORS_RETURN);
}

// When the servers have done what they did with them, the visitors die: rank 0 kills both.
static void die(MPI_Comm all) {
    int pids[2] = {getpid(), getpid()};
    if (rank == 1) CHECK_EQ(MPI_Send(pids + 1, 1, MPI_INT, 0, 2, MPI_COMM_WORLD), MPI_SUCCESS);
    else CHECK_EQ(MPI_Recv(pids + 1, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_SUCCESS);
    for (int server = 0; rank == 0 && server < 2; server++)
        CHECK_EQ(MPI_Recv(NULL, 0, MPI_INT, server, 2, all, MPI_STATUS_IGNORE), MPI_SUCCESS);
    if (rank == 0) {
        kill(pids[1], SIGKILL);
        raise(SIGKILL);
    }
    pause();
}

static int is_failure(int code) {
    return code == MPIX_ERR_PROC_FAILED || code == MPIX_ERR_PROC_FAILED_PENDING || code == MPIX_ERR_REVOKED;
}

// All four do something together.
static void work(MPI_Comm other, MPI_Comm all) {
    int one = 1, sum = 0, from = -1;
    CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all), MPI_SUCCESS);
    CHECK_EQ(sum, 4);
    int code = MPI_Sendrecv(&rank, 1, MPI_INT, rank, 1, &from, 1, MPI_INT, rank, 1, other, MPI_STATUS_IGNORE);
    CHECK_EQ(code, MPI_SUCCESS);
    CHECK_EQ(from, rank);
    CHECK_EQ(MPI_Barrier(other), MPI_SUCCESS);
}

static int failed_members(MPI_Comm comm) {
    MPI_Group failed;
    int count;
    CHECK_EQ(MPIX_Comm_get_failed(comm, &failed), MPI_SUCCESS);
    MPI_Group_size(failed, &count);
    MPI_Group_free(&failed);
    return count;
}

// All visitors are dead, or about to die: those who are left agree, and go on with each other.
static void servers_go_on(const char *how, MPI_Comm other, MPI_Comm all) {
    int code, one = 1, sum = 0, count = 0, flag = 5;
    MPI_Comm left;
    CHECK_EQ(MPI_Send(NULL, 0, MPI_INT, 2, 2, all), MPI_SUCCESS);
    if (is(how, "receive")) {
        code = class_of(MPI_Recv(data, LONG, MPI_CHAR, rank, 9, other, MPI_STATUS_IGNORE));
    } else if (is(how, "send")) {
        code = class_of(MPI_Ssend(data, LONG, MPI_CHAR, 2 + rank, 9, all));
    } else if (is(how, "any")) {
        code = class_of(MPI_Recv(data, LONG, MPI_CHAR, MPI_ANY_SOURCE, 9, all, MPI_STATUS_IGNORE));
    } else {
        code = class_of(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all));
    }
    CHECK(is_failure(code));
    while (failed_members(all) < 2) usleep(1000);
    CHECK_EQ(class_of(MPI_Send(&one, 1, MPI_INT, rank, 3, other)), MPIX_ERR_PROC_FAILED);
    CHECK_EQ(MPIX_Comm_revoke(all), MPI_SUCCESS);
    CHECK_EQ(MPIX_Comm_ack_failed(all, 4, &count), MPI_SUCCESS);
    CHECK_EQ(count, 2);
    CHECK_EQ(MPIX_Comm_agree(all, &flag), MPI_SUCCESS);
    CHECK_EQ(flag, 5);
    CHECK_EQ(MPIX_Comm_shrink(all, &left), MPI_SUCCESS);
    CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, left), MPI_SUCCESS);
    CHECK_EQ(sum, 2);
    MPI_Comm_free(&left);
}

// The visitor 1 dies, or the server 1 does. The others can still reach each other, and learn of it in each call.
static void one_fails(const char *how, MPI_Comm other, MPI_Comm all) {
    int dies = rank == 1 && serves == is(how, "server"), hears = serves != is(how, "server");
    int one = 1, sum = 0, flag = 1, dead = is(how, "server") ? 1 : 3, members;
    // Not before all others have done what comes before.
    MPI_Comm_size(all, &members);
    for (int member = 0; dies && member < members - 1; member++)
        CHECK_EQ(MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 2, all, MPI_STATUS_IGNORE), MPI_SUCCESS);
    if (dies) raise(SIGKILL);
    CHECK_EQ(MPI_Send(NULL, 0, MPI_INT, dead, 2, all), MPI_SUCCESS);
    if (hears) CHECK_EQ(class_of(MPI_Recv(&one, 1, MPI_INT, 1, 4, other, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
    // Whoever is left in it gives up, wherever it waits.
    CHECK(is_failure(class_of(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all))));
    if (rank == 0) {
        one = 7 + serves;
        CHECK_EQ(MPI_Sendrecv_replace(&one, 1, MPI_INT, 0, 5, 0, 5, other, MPI_STATUS_IGNORE), MPI_SUCCESS);
        CHECK_EQ(one, 7 + !serves);
    }
    // Members of another job that live are not asked.
    CHECK_EQ(class_of(MPIX_Comm_agree(all, &flag)), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_EQ(failed_members(all), 1);
}

// One revokes a communicator of both; the others wait in it.
static void one_revokes(MPI_Comm all) {
    if (serves && rank == 0) {
        CHECK_EQ(MPIX_Comm_revoke(all), MPI_SUCCESS);
    } else {
        CHECK_EQ(class_of(MPI_Recv(data, 1, MPI_CHAR, 0, 6, all, MPI_STATUS_IGNORE)), MPIX_ERR_REVOKED);
    }
    int flag = 0;
    CHECK_EQ(MPIX_Comm_is_revoked(all, &flag), MPI_SUCCESS);
    CHECK(flag);
}

static void find(const char *name) {
    while (MPI_Lookup_name(name, MPI_INFO_NULL, port) != MPI_SUCCESS) usleep(2000);
}

// The server 1 has died: who connects at its port is told, and then comes to the server 0.
static void come_late(void) {
    MPI_Comm other = MPI_COMM_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (serves && rank == 1) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Send(port, sizeof port, MPI_CHAR, 0, 7, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        raise(SIGKILL);
    } else if (serves) {
        CHECK_EQ(MPI_Recv(port, sizeof port, MPI_CHAR, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_SUCCESS);
        MPI_Send(NULL, 0, MPI_INT, 1, 8, MPI_COMM_WORLD);
        CHECK_EQ(class_of(MPI_Recv(NULL, 0, MPI_INT, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
        CHECK_EQ(MPI_Publish_name("the dead", MPI_INFO_NULL, port), MPI_SUCCESS);
        CHECK_EQ(MPI_Open_port(MPI_INFO_NULL, port), MPI_SUCCESS);
        CHECK_EQ(MPI_Publish_name("survivors", MPI_INFO_NULL, port), MPI_SUCCESS);
        CHECK_EQ(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other), MPI_SUCCESS);
    } else if (rank == 0) {
        find("the dead");
        CHECK_EQ(class_of(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other)), MPI_ERR_PORT);
        CHECK_EQ(other, MPI_COMM_NULL);
        find("survivors");
        CHECK_EQ(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other), MPI_SUCCESS);
    }
    if (other != MPI_COMM_NULL) CHECK_EQ(MPI_Comm_disconnect(&other), MPI_SUCCESS);
}

// Those of both jobs meet, and what happens then.
static void meet_and_fail(const char *how) {
    MPI_Comm other, all;
    meet(&other, &all);
    work(other, all);
    if (is(how, "one") || is(how, "server")) one_fails(how, other, all);
    else if (is(how, "revoke")) one_revokes(all);
    else if (!is(how, "well") && serves) servers_go_on(how, other, all);
    else if (!is(how, "well")) die(all);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&other);
    // Somebody comes whom nothing ails.
    if (serves && !is(how, "server") && !is(how, "well")) {
        meet(&other, &all);
        work(other, all);
        MPI_Comm_free(&all);
        CHECK_EQ(MPI_Comm_disconnect(&other), MPI_SUCCESS);
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    const char *how = argv[2];
    serves = is(argv[1], "serve");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (is(how, "late")) {
        come_late();
    } else {
        if (serves && rank == 0) {
            MPI_Open_port(MPI_INFO_NULL, port);
            MPI_Publish_name("survivors", MPI_INFO_NULL, port);
        }
        meet_and_fail(how);
    }
    if (rank == 0) printf("passed\n");
    MPI_Finalize();
    return 0;
}
