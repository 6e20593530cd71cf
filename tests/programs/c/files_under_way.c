// Operations on files that are under way: they need no call of the program's, meet in any order with messages, barriers
// and operations on other files, and tell at their end how they went, to every member.
//# ranks: 1 2 3
//# abi: mpich mpi5 openmpi
//# stdout: passed
#include "check.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 100000, LATE = 7 };

static char name[2][64];
static MPI_File file[2];
static int out[COUNT], in[COUNT];
static MPI_Offset own;

static void fill(int seed) {
    for (int index = 0; index < COUNT; index++) {
        out[index] = seed * COUNT + index;
        in[index] = -1;
    }
}

static void check_in(int seed, int count) {
    for (int index = 0; index < COUNT; index++)
        CHECK_EQ(in[index], index < count ? seed * COUNT + index : -1);
}

static void check_count(const MPI_Status *status, int count) {
    int found;
    MPI_Get_count(status, MPI_INT, &found);
    CHECK_EQ(found, count);
}

static void wait_for(MPI_Request *request, int count) {
    MPI_Status status;
    CHECK_EQ(MPI_Wait(request, &status), MPI_SUCCESS);
    CHECK(*request == MPI_REQUEST_NULL);
    check_count(&status, count);
}

/* A member's numbers are in the file, all of them. */
static void check_file(int which, int member, int seed) {
    MPI_Status status;
    memset(in, -1, sizeof in);
    CHECK_EQ(MPI_File_read_at(file[which], (MPI_Offset)member * COUNT, in, COUNT, MPI_INT, &status), MPI_SUCCESS);
    check_count(&status, COUNT);
    check_in(seed, COUNT);
}

static void alone(void) {
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Offset at;
    int half = COUNT / 2, flag = 0;
    fill(rank + 10);
    MPI_File_iwrite_at(file[0], own, out, half, MPI_INT, &requests[0]);
    MPI_File_iwrite_at(file[0], own + half, out + half, half, MPI_INT, &requests[1]);
    wait_for(&requests[1], half);
    wait_for(&requests[0], half);
    check_file(0, rank, rank + 10);
    // Positions are taken when an operation starts.
    fill(rank + 20);
    CHECK_EQ(MPI_File_seek(file[0], own, MPI_SEEK_SET), MPI_SUCCESS);
    MPI_File_iwrite(file[0], out, half, MPI_INT, &requests[0]);
    MPI_File_iwrite(file[0], out + half, half, MPI_INT, &requests[1]);
    MPI_File_get_position(file[0], &at);
    CHECK_EQ(at, own + COUNT);
    while (!flag) MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
    check_file(0, rank, rank + 20);
    // A look at the outcome leaves it there.
    fill(rank + 20);
    MPI_File_iread_at(file[0], own, in, COUNT, MPI_INT, &requests[0]);
    for (flag = 0; !flag;) MPI_Request_get_status(requests[0], &flag, &status);
    check_count(&status, COUNT);
    CHECK_EQ(MPI_Cancel(&requests[0]), MPI_SUCCESS);
    CHECK_EQ(MPI_Wait(&requests[0], &status), MPI_SUCCESS);
    MPI_Test_cancelled(&status, &flag);
    CHECK_EQ(flag, 0);
    check_in(rank + 20, COUNT);
}

/* Rank 0 waits at once, the others meet it first. */
static void with_barriers(void) {
    MPI_Request request;
    fill(rank + 30);
    CHECK_EQ(MPI_File_iwrite_at_all(file[0], own, out, COUNT, MPI_INT, &request), MPI_SUCCESS);
    if (rank == 0) wait_for(&request, COUNT);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) wait_for(&request, COUNT);
    check_file(0, rank, rank + 30);
    // A call that waits, of the same file, while one is under way.
    fill(rank + 31);
    MPI_File_iwrite_at_all(file[0], own, out, COUNT, MPI_INT, &request);
    CHECK_EQ(MPI_File_read_at_all(file[1], own, in, 0, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK_EQ(MPI_File_read_at_all(file[0], own, in, 0, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    wait_for(&request, COUNT);
    check_file(0, rank, rank + 31);
}

/* Members come when a message tells them to; what needs no others is done before. */
static void with_messages(void) {
    MPI_Request all, one;
    fill(rank + 40);
    if (rank == 0) {
        CHECK_EQ(MPI_File_iwrite_at_all(file[0], own, out, COUNT, MPI_INT, &all), MPI_SUCCESS);
        CHECK_EQ(MPI_File_iwrite_at(file[0], (MPI_Offset)size * COUNT, out, COUNT, MPI_INT, &one), MPI_SUCCESS);
        wait_for(&one, COUNT);
        for (int other = 1; other < size; other++) MPI_Send(NULL, 0, MPI_INT, other, LATE, MPI_COMM_WORLD);
    } else {
        MPI_Recv(NULL, 0, MPI_INT, 0, LATE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQ(MPI_File_iwrite_at_all(file[0], own, out, COUNT, MPI_INT, &all), MPI_SUCCESS);
    }
    wait_for(&all, COUNT);
    check_file(0, rank, rank + 40);
    MPI_Barrier(MPI_COMM_WORLD);
    check_file(0, size, 40);
}

/* Several of several files, in any order. */
static void several(void) {
    MPI_Request requests[4];
    static int other[COUNT];
    fill(rank + 50);
    for (int index = 0; index < COUNT; index++) other[index] = out[index] + COUNT;
    for (int step = 0; step < 2; step++) {
        int which = (rank + step) % 2;
        const int *from = which ? other : out;
        CHECK_EQ(MPI_File_seek(file[which], own, MPI_SEEK_SET), MPI_SUCCESS);
        MPI_File_iwrite_all(file[which], from, COUNT / 2, MPI_INT, &requests[which * 2]);
        MPI_File_iwrite_all(file[which], from + COUNT / 2, COUNT / 2, MPI_INT, &requests[which * 2 + 1]);
    }
    int first = rank % 2 * 2;
    wait_for(&requests[3 - first], COUNT / 2);
    CHECK_EQ(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    check_file(0, rank, rank + 50);
    check_file(1, rank, rank + 51);
}

static void split(void) {
    MPI_Status status;
    fill(rank + 60);
    CHECK_EQ(MPI_File_write_at_all_begin(file[0], own, out, COUNT, MPI_INT), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_File_write_at_all(file[0], own, out, COUNT, MPI_INT, &status)), MPI_ERR_OTHER);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_write_at_all_end(file[0], out, &status), MPI_SUCCESS);
    check_count(&status, COUNT);
    check_file(0, rank, rank + 60);
    CHECK_EQ(MPI_File_seek_shared(file[1], 0, MPI_SEEK_SET), MPI_SUCCESS);
    CHECK_EQ(MPI_File_write_ordered_begin(file[1], out, COUNT, MPI_INT), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_write_ordered_end(file[1], out, &status), MPI_SUCCESS);
    check_count(&status, COUNT);
    check_file(1, rank, rank + 60);
    fill(rank + 60);
    CHECK_EQ(MPI_File_seek(file[1], own, MPI_SEEK_SET), MPI_SUCCESS);
    CHECK_EQ(MPI_File_read_all_begin(file[1], in, COUNT, MPI_INT), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_read_all_end(file[1], in, &status), MPI_SUCCESS);
    check_count(&status, COUNT);
    check_in(rank + 60, COUNT);
}

/* The end of the file: a part of the last member's numbers is there, and nothing behind them. */
static void ends(void) {
    MPI_Request requests[2];
    MPI_Status status;
    CHECK_EQ(MPI_File_set_size(file[0], ((MPI_Offset)size * COUNT - 5) * (MPI_Offset)sizeof(int)), MPI_SUCCESS);
    fill(rank + 60);
    int there = rank == size - 1 ? COUNT - 5 : COUNT;
    MPI_File_iread_at_all(file[0], own, in, COUNT, MPI_INT, &requests[0]);
    wait_for(&requests[0], there);
    check_in(rank + 60, there);
    MPI_File_iread_at(file[0], (MPI_Offset)size * COUNT, in, COUNT, MPI_INT, &requests[0]);
    MPI_File_iread_at(file[0], own, in, COUNT, MPI_INT, &requests[1]);
    wait_for(&requests[0], 0);
    CHECK_EQ(MPI_Wait(&requests[1], &status), MPI_SUCCESS);
    check_count(&status, there);
}

/* One member may not write so far; all hear of it when it is over. */
__attribute__((unused)) static void failing(void) {
    struct rlimit limit, old;
    MPI_Request requests[2];
    MPI_Status status;
    getrlimit(RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = 1000 * sizeof(int);
    signal(SIGXFSZ, SIG_IGN);
    if (rank == size - 1) CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK_EQ(MPI_File_iwrite_at_all(file[0], own, out, rank == size - 1 ? COUNT : 0, MPI_INT, &requests[0]),
             MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(class_of(MPI_Wait(&requests[0], &status)), MPI_ERR_NO_SPACE);
    CHECK(requests[0] == MPI_REQUEST_NULL);
    MPI_File_iwrite_at(file[0], own, out, COUNT, MPI_INT, &requests[0]);
    CHECK_EQ(class_of(MPI_Wait(&requests[0], &status)), rank == size - 1 ? MPI_ERR_NO_SPACE : MPI_SUCCESS);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    // A wrong argument of one member, too.
    MPI_File_iwrite_at_all(file[0], rank == 0 ? -1 : own, out, COUNT, MPI_INT, &requests[0]);
    CHECK_EQ(class_of(MPI_Wait(&requests[0], &status)), MPI_ERR_ARG);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Beside other kinds of requests. */
static void mixed(void) {
    MPI_Request requests[3];
    int left = 3, peer = (rank + 1) % size, word = -1;
    fill(rank + 70);
    MPI_Irecv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_File_iwrite_at_all(file[0], own, out, COUNT, MPI_INT, &requests[1]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[2]);
    while (left > 0) {
        int index;
        MPI_Status status;
        // The message is sent when something else is over.
        if (left == 2) MPI_Send(&rank, 1, MPI_INT, peer, 1, MPI_COMM_WORLD);
        CHECK_EQ(MPI_Waitany(3, requests, &index, &status), MPI_SUCCESS);
        if (index == 1) check_count(&status, COUNT);
        left--;
    }
    CHECK_EQ(word, (rank + size - 1) % size);
    check_file(0, rank, rank + 70);
}

/* Nobody asks for the outcome; a child of the program's comes and goes. */
static void left_alone(void) {
    MPI_Request requests[2];
    fill(rank + 80);
    MPI_File_iwrite_at(file[0], own, out, COUNT, MPI_INT, &requests[0]);
    MPI_File_iwrite_at_all(file[1], own, out, COUNT, MPI_INT, &requests[1]);
    pid_t child = fork();
    if (child == 0) _exit(3);
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    CHECK_EQ(MPI_Request_free(&requests[0]), MPI_SUCCESS);
    CHECK_EQ(MPI_Request_free(&requests[1]), MPI_SUCCESS);
    for (int which = 0; which < 2; which++) {
        CHECK_EQ(MPI_File_close(&file[which]), MPI_SUCCESS);
        CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name[which], MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                               &file[which]), MPI_SUCCESS);
        MPI_File_set_view(file[which], 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
        check_file(which, rank, rank + 80);
    }
}

/* The end of a session waits for nothing of a file that others opened: the last rank begins when it is over. */
static void beside_a_session(void) {
    MPI_Session session;
    MPI_Request request;
    int peer = (rank + 1) % size, token = 0;
    fill(rank + 90);
    CHECK_EQ(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session), MPI_SUCCESS);
    if (size > 1 && rank == size - 1) MPI_Recv(&token, 1, MPI_INT, size - 2, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_File_iwrite_at_all(file[0], own, out, COUNT, MPI_INT, &request);
    CHECK_EQ(MPI_Session_finalize(&session), MPI_SUCCESS);
    if (rank == size - 2) MPI_Send(&token, 1, MPI_INT, peer, 5, MPI_COMM_WORLD);
    wait_for(&request, COUNT);
    check_file(0, rank, rank + 90);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK_EQ(chdir("/dev/shm"), 0);
    own = (MPI_Offset)rank * COUNT;
    for (int which = 0; which < 2; which++) {
        if (rank == 0) snprintf(name[which], sizeof name[which], "files-under-way-%d-%d", (int)getpid(), which);
        MPI_Bcast(name[which], sizeof name[which], MPI_CHAR, 0, MPI_COMM_WORLD);
        CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name[which], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                               &file[which]), MPI_SUCCESS);
        CHECK_EQ(MPI_File_set_view(file[which], 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_SUCCESS);
    }
    alone();
    with_barriers();
    with_messages();
    several();
    split();
    ends();
#ifndef PLAIN
    failing();
#endif
    mixed();
    beside_a_session();
    left_alone();
    MPI_File_close(&file[0]);
    MPI_File_close(&file[1]);
    return finish();
}
