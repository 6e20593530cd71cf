// Windows and files that a member revokes: whoever waits for others in them is told, nobody can use them any more, and
// they can be freed. Then a rank dies, and they say who it was.
//# ranks: 4
//# abi: mpi5 mpich openmpi
//# progress: none
//# policies: listed
// Ranks that survive each other do no work for others.
//# nodes: no
// Nodes that survive each other have no such windows.
//# settings: COHORT_ON_FAILURE=continue
#include "check.h"
#include "survival.h"
#include <signal.h>
#include <unistd.h>
#ifdef OPEN_MPI
#define MPIX_FT MPI_FT
#endif

static long *memory, value = 7;
static int revoked;

// Rank 0 revokes when all others are about to wait.
static void tell_first(void) {
    if (rank > 0) CHECK_EQ(MPI_Send(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD), MPI_SUCCESS);
    for (int i = 1; rank == 0 && i < size; i++) {
        CHECK_EQ(MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_SUCCESS);
    }
}

static MPI_Win window(void) {
    MPI_Win win;
    CHECK_EQ(MPI_Win_allocate(80, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win), MPI_SUCCESS);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    CHECK_EQ(MPIX_Win_is_revoked(win, &revoked), MPI_SUCCESS);
    CHECK_EQ(revoked, 0);
    return win;
}

static MPI_Group only(int member) {
    MPI_Group all, one;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &member, &one);
    MPI_Group_free(&all);
    return one;
}

// Nothing that begins an epoch goes any more.
static void is_over(MPI_Win win) {
    MPI_Group first = only(0);
    CHECK_EQ(MPIX_Win_is_revoked(win, &revoked), MPI_SUCCESS);
    CHECK_EQ(revoked, 1);
    CHECK_EQ(class_of(MPI_Win_fence(0, win)), MPIX_ERR_REVOKED);
    CHECK_EQ(class_of(MPI_Win_lock_all(0, win)), MPIX_ERR_REVOKED);
    CHECK_EQ(class_of(MPI_Win_lock_all(MPI_MODE_NOCHECK, win)), MPIX_ERR_REVOKED);
    CHECK_EQ(class_of(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win)), MPIX_ERR_REVOKED);
    CHECK_EQ(class_of(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, MPI_MODE_NOCHECK, win)), MPIX_ERR_REVOKED);
    CHECK_EQ(class_of(MPI_Win_post(first, 0, win)), MPIX_ERR_REVOKED);
    CHECK_EQ(class_of(MPI_Win_start(first, 0, win)), MPIX_ERR_REVOKED);
    MPI_Group_free(&first);
    CHECK_EQ(MPI_Win_free(&win), MPI_SUCCESS);
    CHECK(win == MPI_WIN_NULL);
}

// The others wait for a fence that rank 0 does not come to.
static void at_a_fence(void) {
    MPI_Win win = window();
    tell_first();
    if (rank == 0) CHECK_EQ(MPIX_Win_revoke(win), MPI_SUCCESS);
    if (rank > 0) CHECK_EQ(class_of(MPI_Win_fence(0, win)), MPIX_ERR_REVOKED);
    is_over(win);
}

// They wait for its post, or for its end of an access.
static void at_a_post(void) {
    MPI_Win win = window();
    MPI_Group first = only(0);
    tell_first();
    if (rank == 0) CHECK_EQ(MPIX_Win_revoke(win), MPI_SUCCESS);
    if (rank == 1) {
        int code = MPI_Win_post(first, 0, win);
        if (code == MPI_SUCCESS) code = MPI_Win_wait(win);
        CHECK_EQ(class_of(code), MPIX_ERR_REVOKED);
    } else if (rank > 1) {
        int code = MPI_Win_start(first, 0, win);
        if (code == MPI_SUCCESS) code = MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
        if (code == MPI_SUCCESS) code = MPI_Win_complete(win);
        CHECK_EQ(class_of(code), MPIX_ERR_REVOKED);
    }
    MPI_Group_free(&first);
    is_over(win);
}

// They wait for a lock that `holder` has, which then revokes the window or dies: with a request, a flush or an unlock.
static int wait_for_lock(MPI_Win win, int holder) {
    MPI_Request request;
    int code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, holder, 0, win);
    if (code != MPI_SUCCESS) return code;
    if (rank == 1) {
        code = MPI_Rput(&value, 1, MPI_LONG, holder, 0, 1, MPI_LONG, win, &request);
        return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
    }
    code = MPI_Put(&value, 1, MPI_LONG, holder, rank, 1, MPI_LONG, win);
    if (code != MPI_SUCCESS) return code;
    return rank == 2 ? MPI_Win_flush(holder, win) : MPI_Win_unlock(holder, win);
}

static void at_a_lock(void) {
    MPI_Win win = window();
    if (rank == 0) CHECK_EQ(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win), MPI_SUCCESS);
    CHECK_EQ(MPI_Barrier(MPI_COMM_WORLD), MPI_SUCCESS);
    tell_first();
    if (rank == 0) CHECK_EQ(MPIX_Win_revoke(win), MPI_SUCCESS);
    if (rank > 0) CHECK_EQ(class_of(wait_for_lock(win, 0)), MPIX_ERR_REVOKED);
    // All have been told before the lock is given back.
    CHECK_EQ(MPI_Barrier(MPI_COMM_WORLD), MPI_SUCCESS);
    if (rank == 0) CHECK_EQ(MPI_Win_unlock(0, win), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_free(&win), MPI_SUCCESS);
}

// Others may run the same program beside this job.
static MPI_File open_file(void) {
    MPI_File file;
    char name[64] = "";
    if (rank == 0) snprintf(name, sizeof name, "survive_revoke.%d", (int)getpid());
    CHECK_EQ(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD), MPI_SUCCESS);
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), MPI_SUCCESS);
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    CHECK_EQ(MPIX_File_is_revoked(file, &revoked), MPI_SUCCESS);
    CHECK_EQ(revoked, 0);
    return file;
}

// They wait for a collective of a file.
static void in_a_file(void) {
    MPI_File file = open_file();
    MPI_Request request;
    CHECK_EQ(MPI_File_write_at_all(file, rank * 8, &value, 1, MPI_LONG, MPI_STATUS_IGNORE), MPI_SUCCESS);
    tell_first();
    if (rank == 0) CHECK_EQ(MPIX_File_revoke(file), MPI_SUCCESS);
    if (rank > 0) CHECK_EQ(class_of(MPI_File_set_size(file, 800)), MPIX_ERR_REVOKED);
    CHECK_EQ(MPIX_File_is_revoked(file, &revoked), MPI_SUCCESS);
    CHECK_EQ(revoked, 1);
    CHECK_EQ(class_of(MPI_File_write_all(file, &value, 1, MPI_LONG, MPI_STATUS_IGNORE)), MPIX_ERR_REVOKED);
    CHECK_EQ(class_of(MPI_File_read_at(file, 0, &value, 1, MPI_LONG, MPI_STATUS_IGNORE)), MPIX_ERR_REVOKED);
    CHECK_EQ(class_of(MPI_File_iread_at(file, 0, &value, 1, MPI_LONG, &request)), MPIX_ERR_REVOKED);
    CHECK_EQ(class_of(MPI_File_seek_shared(file, 0, MPI_SEEK_SET)), MPIX_ERR_REVOKED);
    // It is closed all the same.
    CHECK_EQ(class_of(MPI_File_close(&file)), MPIX_ERR_REVOKED);
    CHECK(file == MPI_FILE_NULL);
}

static void has_one(MPI_Group failed, int which) {
    MPI_Group lost = only(which);
    int same;
    MPI_Group_compare(failed, lost, &same);
    CHECK_EQ(same, MPI_IDENT);
    MPI_Group_free(&lost);
    MPI_Group_free(&failed);
}

// The last rank dies with a lock of its own memory.
static void lose_one(void) {
    MPI_Win win = window();
    MPI_File file = open_file();
    MPI_Group failed;
    int last = size - 1;
    CHECK_EQ(MPIX_Win_get_failed(win, &failed), MPI_SUCCESS);
    CHECK(failed == MPI_GROUP_EMPTY || failed != MPI_GROUP_NULL);
    MPI_Group_free(&failed);
    if (rank == last) CHECK_EQ(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, last, 0, win), MPI_SUCCESS);
    CHECK_EQ(MPI_Barrier(MPI_COMM_WORLD), MPI_SUCCESS);
    tell_first();
    if (rank == 0) CHECK_EQ(MPI_Send(NULL, 0, MPI_INT, last, 2, MPI_COMM_WORLD), MPI_SUCCESS);
    if (rank == last) {
        CHECK_EQ(MPI_Recv(NULL, 0, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_SUCCESS);
        raise(SIGKILL);
    }
    CHECK_EQ(class_of(wait_for_lock(win, last)), MPIX_ERR_PROC_FAILED);
    CHECK_EQ(MPIX_Win_get_failed(win, &failed), MPI_SUCCESS);
    has_one(failed, last);
    CHECK_EQ(MPIX_File_get_failed(file, &failed), MPI_SUCCESS);
    has_one(failed, last);
    CHECK_EQ(MPIX_Win_is_revoked(win, &revoked), MPI_SUCCESS);
    CHECK_EQ(revoked, 0);
    // All have found that out.
    MPI_Comm left;
    CHECK_EQ(MPIX_Comm_shrink(MPI_COMM_WORLD, &left), MPI_SUCCESS);
    CHECK_EQ(MPI_Comm_free(&left), MPI_SUCCESS);
    CHECK_EQ(MPIX_Win_revoke(win), MPI_SUCCESS);
    CHECK_EQ(MPI_Win_free(&win), MPI_SUCCESS);
    // Without the dead there is no collective of the file, but each can read.
    CHECK_EQ(MPI_File_read_at(file, 0, &value, 1, MPI_LONG, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_File_close(&file)), MPIX_ERR_PROC_FAILED);
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    // More than this does not go with failures that are survived.
    CHECK_EQ(provided, MPI_THREAD_SERIALIZED);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
#ifdef MPIX_FT
    int is_there = 0, *survives = NULL;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPIX_FT, &survives, &is_there);
    CHECK(is_there && *survives == 1);
#endif
    at_a_fence();
    at_a_post();
    at_a_lock();
    in_a_file();
    lose_one();
    if (rank == 0) puts("passed");
    MPI_Finalize();
    return 0;
}
