/* One of two jobs that meet at a port: ARGUMENTS: HOW, `serve` or `visit`, and how often. `all`: everything that a
   communicator of both can do. `turns`: clients in turn, of one rank each. `many`: the server keeps all clients and
   answers the last one first. `join`: by a socket; `mute`: by one whose other end stops. `parted WAY`, `ends WAY`,
   `shares WAY`: how one ends, the last one with a window only that joins both. `leaves free`, `leaves disconnect`:
   the client has sent what is not taken yet, and gives the communicator up. `waits FILE`, `stops FILE`: a client that
   dies while it waits in MPI_Comm_connect, before or after the server has accepted it, and another one. `refused`: a
   name that cannot be published. `departs`: rank 0 of the server ends by MPI_ERRORS_ABORT, alone. The port is
   published as "port of jobs", or stands in the environment as PORT. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CHECK(it) do { if (!(it)) { \
    fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #it); MPI_Abort(MPI_COMM_WORLD, 9); } } while (0)
#define LONG (1 << 20)

static int rank, size, serves;
static char port[MPI_MAX_PORT_NAME];
static const char *how;

static int is(const char *word, const char *other) { return strcmp(word, other) == 0; }

static void find_port(void) {
    const char *name = "port of jobs", *given = getenv("PORT");
    if (rank > 0) return;
    if (given) {
        strncpy(port, given, sizeof port - 1);
    } else if (serves) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name(name, MPI_INFO_NULL, port);
        printf("%s\n", port);
        fflush(stdout);
    } else {
        /* Whoever was started first: the server may not have come so far. */
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        while (MPI_Lookup_name(name, MPI_INFO_NULL, port) != MPI_SUCCESS) usleep(2000);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    }
}

static void meet(MPI_Comm comm, MPI_Comm *other) {
    if (serves) MPI_Comm_accept(port, MPI_INFO_NULL, 0, comm, other);
    else MPI_Comm_connect(port, MPI_INFO_NULL, 0, comm, other);
}

/* A message whose data waits for its receiver, of a derived datatype at one end. */
static void long_message(MPI_Comm other, int turn) {
    int *data = malloc(2 * LONG * sizeof(int)), at;
    MPI_Datatype every_second;
    MPI_Request request;
    MPI_Type_vector(LONG, 1, 2, MPI_INT, &every_second);
    MPI_Type_commit(&every_second);
    if (serves) {
        for (at = 0; at < LONG; at++) data[2 * at] = at * 3 + turn;
        MPI_Issend(data, 1, every_second, 0, 7, other, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Status status;
        int count;
        MPI_Probe(MPI_ANY_SOURCE, 7, other, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 7 && count == LONG);
        MPI_Recv(data, LONG, MPI_INT, 0, 7, other, MPI_STATUS_IGNORE);
        for (at = 0; at < LONG; at++) CHECK(data[at] == data[0] + at * 3);
    }
    MPI_Type_free(&every_second);
    free(data);
}

/* Partitioned messages and others of the same tag, also to the next of both jobs, who may be of the own one. */
static void partitions(MPI_Comm comm, int to, int from, int sends, int receives) {
    int out[4] = {rank, 1, 2, 3}, in[4] = {-1, -1, -1, -1}, one = 77, other = 0;
    MPI_Request send = MPI_REQUEST_NULL, receive = MPI_REQUEST_NULL, plain = MPI_REQUEST_NULL;
    if (sends) {
        MPI_Psend_init(out, 4, 1, MPI_INT, to, 5, comm, MPI_INFO_NULL, &send);
        MPI_Isend(&one, 1, MPI_INT, to, 5, comm, &plain);
        MPI_Start(&send);
    }
    if (receives) {
        MPI_Status status;
        int bytes;
        MPI_Recv(&other, 1, MPI_INT, from, 5, comm, &status);
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        CHECK(other == 77 && bytes == 4);
        MPI_Precv_init(in, 4, 1, MPI_INT, from, 5, comm, MPI_INFO_NULL, &receive);
        MPI_Start(&receive);
    }
    if (sends)
        MPI_Pready_range(0, 3, send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Wait(&plain, MPI_STATUS_IGNORE);
    if (receives)
        CHECK(in[1] == 1 && in[2] == 2 && in[3] == 3);
    if (sends) MPI_Request_free(&send);
    if (receives) MPI_Request_free(&receive);
}

/* Letters that a wiretap looks for, made here so that no file has them. */
static void letters(MPI_Comm other) {
    char *data = malloc(2 * LONG);
    for (int at = 0; at < 2 * LONG; at++) data[at] = serves ? 'A' + at % 24 : 0;
    if (serves) MPI_Send(data, 2 * LONG, MPI_CHAR, 0, 8, other);
    else MPI_Recv(data, 2 * LONG, MPI_CHAR, 0, 8, other, MPI_STATUS_IGNORE);
    for (int at = 0; at < 2 * LONG; at++) CHECK(data[at] == 'A' + at % 24);
    free(data);
}

/* Each rank of one side to each of the other one, in both directions at once. */
static void all_to_all(MPI_Comm other) {
    int theirs, peer, out[64], in[64];
    MPI_Request requests[128];
    MPI_Comm_remote_size(other, &theirs);
    for (peer = 0; peer < theirs; peer++) {
        out[peer] = 1000 * serves + 100 * rank + peer;
        MPI_Irecv(&in[peer], 1, MPI_INT, peer, 3, other, &requests[2 * peer]);
        MPI_Isend(&out[peer], 1, MPI_INT, peer, 3, other, &requests[2 * peer + 1]);
    }
    MPI_Waitall(2 * theirs, requests, MPI_STATUSES_IGNORE);
    for (peer = 0; peer < theirs; peer++) CHECK(in[peer] == 1000 * !serves + 100 * peer + rank);
}

/* Puts, and messages in windows of memory, among all ranks of both. */
static void window(MPI_Comm merged) {
    int *base, me, all, at;
    MPI_Win win;
    MPI_Comm_rank(merged, &me);
    MPI_Comm_size(merged, &all);
    MPI_Win_allocate(all * sizeof(int), sizeof(int), MPI_INFO_NULL, merged, &base, &win);
    MPI_Win_fence(0, win);
    for (at = 0; at < all; at++) MPI_Put(&me, 1, MPI_INT, at, me, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (at = 0; at < all; at++) CHECK(base[at] == at);
    MPI_Barrier(merged);
    MPI_Win_lock_all(0, win);
    int one = 1, before;
    MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 0, MPI_SUM, win);
    MPI_Win_unlock_all(win);
    MPI_Barrier(merged);
    if (me == 0) CHECK(base[0] == all);
    MPI_Win_free(&win);
}

/* Communicators that are made from one of both jobs. */
static void family(MPI_Comm merged) {
    int me, all, sum, part, leader;
    MPI_Comm twin, half, pair, group_comm;
    MPI_Group group, some;
    MPI_Comm_rank(merged, &me);
    MPI_Comm_size(merged, &all);
    MPI_Comm_dup(merged, &twin);
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, twin);
    CHECK(sum == all * (all - 1) / 2);
    MPI_Comm_split(twin, me % 2, -me, &half);
    MPI_Comm_size(half, &part);
    CHECK(part == (all + 1 - me % 2) / 2);
    MPI_Bcast(&me, 1, MPI_INT, part - 1, half);
    CHECK(me == 0 || me == 1);
    MPI_Comm_rank(merged, &me);
    leader = 1 - me % 2;
    MPI_Intercomm_create(half, part - 1, twin, leader, 5, &pair);
    MPI_Comm_remote_size(pair, &sum);
    CHECK(sum + part == all);
    MPI_Barrier(pair);
    MPI_Comm_free(&pair);
    MPI_Comm_free(&half);
    int ends[2] = {0, all - 1};
    MPI_Comm_group(merged, &group);
    MPI_Group_incl(group, 2, ends, &some);
    if (me == 0 || me == all - 1) {
        MPI_Comm_create_group(merged, some, 11, &group_comm);
        MPI_Barrier(group_comm);
        MPI_Comm_free(&group_comm);
    }
    MPI_Group_free(&some);
    MPI_Group_free(&group);
    MPI_Comm_free(&twin);
}

static void all(int times) {
    for (int turn = 0; turn < times; turn++) {
        MPI_Comm other, merged;
        int ours = rank + 1, sum = 0, theirs, me, size_of_both;
        meet(MPI_COMM_WORLD, &other);
        if (rank == 0) long_message(other, turn);
        if (rank == 0) letters(other);
        all_to_all(other);
        MPI_Comm_remote_size(other, &theirs);
        MPI_Allreduce(&ours, &sum, 1, MPI_INT, MPI_SUM, other);
        CHECK(sum == theirs * (theirs + 1) / 2);
        MPI_Intercomm_merge(other, !serves, &merged);
        MPI_Comm_rank(merged, &me);
        CHECK(me == rank + (serves ? 0 : theirs));
        if (rank == 0) partitions(other, 0, 0, serves, !serves);
        MPI_Comm_size(merged, &size_of_both);
        partitions(merged, (me + 1) % size_of_both, (me + size_of_both - 1) % size_of_both, 1, 1);
        window(merged);
        family(merged);
        MPI_Comm_free(&merged);
        MPI_Comm_disconnect(&other);
        CHECK(other == MPI_COMM_NULL);
    }
}

static void turns(int times) {
    for (int turn = 0; turn < times; turn++) {
        MPI_Comm other;
        int out = serves * 7 + turn, in = -1;
        meet(MPI_COMM_SELF, &other);
        MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, other, MPI_STATUS_IGNORE);
        if (!serves) CHECK(in >= 7);
        MPI_Comm_disconnect(&other);
    }
}

/* Rank 0 of the client dies in MPI_Comm_connect. Rank 1 kills it: as soon as it waits, or when the server, which begins
   to accept once the file is there, may have got so far as to ask it who is in its group. If the job goes on then, rank
   1 is the next client. */
static void vanish(const char *file, int stops) {
    int pid = getpid();
    MPI_Comm other;
    if (serves) {
        while (access(file, F_OK) != 0) usleep(2000);
        turns(1);
    } else if (rank == 0) {
        MPI_Send(&pid, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Send(port, sizeof port, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        meet(MPI_COMM_SELF, &other);
    } else {
        MPI_Recv(&pid, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(port, sizeof port, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        usleep(300000);
        if (stops) {
            kill(pid, SIGSTOP);
            close(open(file, O_CREAT | O_WRONLY, 0600));
            usleep(300000);
        }
        kill(pid, SIGKILL);
        /* The launcher hears of that, and ends this rank too, or goes on. */
        usleep(300000);
        if (!stops) close(open(file, O_CREAT | O_WRONLY, 0600));
        turns(1);
    }
}

static void many(int clients) {
    MPI_Comm other[64];
    int answer = 5;
    for (int at = 0; at < (serves ? clients : 1); at++) meet(MPI_COMM_SELF, &other[at]);
    for (int at = (serves ? clients : 1) - 1; at >= 0; at--) {
        if (serves) MPI_Send(&answer, 1, MPI_INT, 0, 2, other[at]);
        else MPI_Recv(&answer, 1, MPI_INT, 0, 2, other[at], MPI_STATUS_IGNORE);
        CHECK(answer == 5);
        MPI_Comm_disconnect(&other[at]);
    }
}

/* The folder of names cannot be used: nobody finds the name, and the reason stays the same. */
static void refused(void) {
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Open_port(MPI_INFO_NULL, port);
    for (int turn = 0; turn < 2; turn++) {
        char text[MPI_MAX_ERROR_STRING];
        int class, length, code = MPI_Publish_name("refused", MPI_INFO_NULL, port);
        MPI_Error_class(code, &class);
        MPI_Error_string(code, text, &length);
        CHECK(class == MPI_ERR_SERVICE && !strstr(text, "already"));
        MPI_Error_class(MPI_Lookup_name("refused", MPI_INFO_NULL, port), &class);
        CHECK(class == MPI_ERR_NAME);
    }
    MPI_Close_port(port);
}

static void join(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int line = socket(AF_UNIX, SOCK_STREAM, 0), got = -1;
    MPI_Comm other;
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    if (serves) {
        int listener = line;
        CHECK(bind(listener, (void *)&address, sizeof address) == 0 && listen(listener, 1) == 0);
        line = accept(listener, NULL, NULL);
    } else {
        while (connect(line, (void *)&address, sizeof address) != 0) usleep(2000);
    }
    CHECK(line >= 0);
    MPI_Comm_join(line, &other);
    CHECK(other != MPI_COMM_NULL);
    MPI_Sendrecv(&serves, 1, MPI_INT, 0, 1, &got, 1, MPI_INT, 0, 1, other, MPI_STATUS_IGNORE);
    CHECK(got == !serves);
    MPI_Comm_disconnect(&other);
}

/* Joins what says that it is a process of another job, and no more. */
static void mute(void) {
    unsigned long long words[4] = {0x006e696f6a2d636f, 1, 0, 9};
    int ends[2], code, class;
    MPI_Comm made = MPI_COMM_WORLD;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    CHECK(write(ends[1], words, sizeof words) == sizeof words);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    code = MPI_Comm_join(ends[0], &made);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_OTHER && made == MPI_COMM_NULL);
}

/* The client ends in this way, connected with the server or not any more. */
static void end(const char *way) {
    if (is(way, "exit")) exit(3);
    if (is(way, "abort")) MPI_Abort(MPI_COMM_WORLD, 7);
    if (is(way, "kill")) kill(getpid(), SIGKILL);
    if (is(way, "finalize") || is(way, "stay")) return;
    CHECK(0);
}

static void ends(const char *way, int parts) {
    MPI_Comm other;
    int got;
    meet(MPI_COMM_WORLD, &other);
    MPI_Barrier(other);
    if (parts) MPI_Comm_disconnect(&other);
    if (!serves && rank == size - 1) end(way);
    if (!serves) MPI_Barrier(MPI_COMM_WORLD);
    if (serves && !parts) MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 0, other, MPI_STATUS_IGNORE);
    if (serves && parts) {
        /* Somebody else may come, and stays. */
        meet(MPI_COMM_WORLD, &other);
        MPI_Barrier(other);
        MPI_Comm_disconnect(&other);
    }
}

static void departs(void) {
    MPI_Comm other;
    if (rank == 0) meet(MPI_COMM_SELF, &other);
    if (rank > 0 || !serves) return;
    MPI_Comm_set_errhandler(other, MPI_ERRORS_ABORT);
    MPI_Send(NULL, 0, MPI_INT, 5, 0, other);
    MPI_Abort(MPI_COMM_WORLD, 99);
}

/* A window joins the two jobs after the communicator, in which the server waits for the client. */
static void shares(const char *way) {
    MPI_Comm other, merged;
    MPI_Win win;
    meet(MPI_COMM_WORLD, &other);
    MPI_Intercomm_merge(other, serves, &merged);
    MPI_Win_create(&size, sizeof size, 1, MPI_INFO_NULL, merged, &win);
    MPI_Comm_disconnect(&merged);
    MPI_Comm_disconnect(&other);
    if (!serves && rank == size - 1) end(way);
    if (!serves) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_fence(0, win);
}

/* Messages of the client that it does not wait for, one of them buffered. */
static void leaves(const char *way) {
    enum { SENDS = 3, BYTES = 10 << 20 };
    char *bytes = malloc(SENDS * BYTES), *buffer = malloc(BYTES + MPI_BSEND_OVERHEAD), *at = bytes;
    int frees = is(way, "free");
    MPI_Comm other;
    MPI_Request requests[SENDS];
    meet(MPI_COMM_WORLD, &other);
    memset(bytes, serves ? 0 : 7, SENDS * BYTES);
    if (!serves) MPI_Buffer_attach(buffer, BYTES + MPI_BSEND_OVERHEAD);
    if (serves && frees) usleep(300000);
    for (int turn = 0; turn < SENDS; turn++, at += BYTES) {
        if (serves) MPI_Irecv(at, BYTES, MPI_BYTE, rank, turn, other, &requests[turn]);
        else if (turn == 0) MPI_Ibsend(at, BYTES, MPI_BYTE, rank, turn, other, &requests[turn]);
        else MPI_Isend(at, BYTES, MPI_BYTE, rank, turn, other, &requests[turn]);
        if (!serves) MPI_Request_free(&requests[turn]);
    }
    if (frees) MPI_Comm_free(&other);
    else MPI_Comm_disconnect(&other);
    /* What was under way on a communicator is over when it is disconnected. */
    if (!serves && !frees) memset(bytes, 0, SENDS * BYTES);
    if (serves) MPI_Waitall(SENDS, requests, MPI_STATUSES_IGNORE);
    for (int byte = 0; serves && byte < SENDS * BYTES; byte += 4095) CHECK(bytes[byte] == 7);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    how = argv[1];
    serves = is(argv[2], "serve");
    int meets = !is(how, "join") && !is(how, "mute") && !is(how, "refused");
    if (meets) find_port();
    if (is(how, "all")) all(atoi(argv[3]));
    if (is(how, "turns")) turns(atoi(argv[3]));
    if (is(how, "many")) many(atoi(argv[3]));
    if (is(how, "join")) join(argv[3]);
    if (is(how, "mute")) mute();
    if (is(how, "refused")) refused();
    if (is(how, "waits") || is(how, "stops")) vanish(argv[3], is(how, "stops"));
    if (is(how, "ends")) ends(argv[3], 0);
    if (is(how, "parted")) ends(argv[3], 1);
    if (is(how, "departs")) departs();
    if (is(how, "shares")) shares(argv[3]);
    if (is(how, "leaves")) leaves(argv[3]);
    if (serves && rank == 0 && meets) {
        MPI_Unpublish_name("port of jobs", MPI_INFO_NULL, port);
        MPI_Close_port(port);
    }
    MPI_Finalize();
    printf("passed\n");
    return 0;
}
