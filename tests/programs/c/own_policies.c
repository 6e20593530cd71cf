// Progress policies of single communicators and windows, by the info key `cohort_progress`: a long
// message on a communicator with a policy arrives while its receiver computes, one on
// MPI_COMM_WORLD, whose policy is `none`, does not. The policy lasts as long as its object. A value
// that is no policy is an error, and makes nothing. Other policies move the messages of
// MPI_COMM_WORLD too.
//# ranks: 2
//# abi: mpi5
//# progress: none
//# policies: listed
//# nodes: no
#include "check.h"
#include "policies.h"
#include <unistd.h>
enum { LENGTH = 200000, QUIET_US = 20000 };
static volatile unsigned char buffer[LENGTH];

static MPI_Info hint(const char *policy) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "cohort_progress", policy);
    return info;
}

static int is_in_force(MPI_Info info, const char *policy) {
    char value[64] = "";
    int room = sizeof value, flag;
    MPI_Info_get_string(info, "cohort_progress", &room, value, &flag);
    MPI_Info_free(&info);
    return flag && strcmp(value, policy) == 0;
}

static int comm_has(MPI_Comm comm, const char *policy) {
    MPI_Info info;
    MPI_Comm_get_info(comm, &info);
    return is_in_force(info, policy);
}

static int win_has(MPI_Win win, const char *policy) {
    MPI_Info info;
    MPI_Win_get_info(win, &info);
    return is_in_force(info, policy);
}

// Rank 0 leaves a receive behind and calls nothing until the message is there, or for a while if `waits` is 0. Says
// whether the message came meanwhile.
static int leave_behind(MPI_Comm comm, int waits) {
    static int seed = 0;
    int came = 1;
    MPI_Request request;
    seed = seed % 200 + 1;
    if (rank == 0) {
        buffer[LENGTH - 1] = 0;
        MPI_Irecv((void *)buffer, LENGTH, MPI_BYTE, MPI_ANY_SOURCE, 0, comm, &request);
        MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        if (waits)
            while (buffer[LENGTH - 1] != seed) continue;
        else
            usleep(QUIET_US);
        came = buffer[LENGTH - 1] == seed;
    } else {
        memset((void *)buffer, seed, LENGTH);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Isend((void *)buffer, LENGTH, MPI_BYTE, 0, 0, comm, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < LENGTH; i++) CHECK_EQ(buffer[i], seed);
    MPI_Bcast(&came, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return came;
}

// The message arrives, or does not. A worker of a message before may be so late, on a busy machine, that it moves one
// that nobody is to move.
static void exchange(MPI_Comm comm, int arrives) {
    int came = leave_behind(comm, arrives);
    for (int again = 0; again < 3 && came != arrives; again++) came = leave_behind(comm, arrives);
    CHECK_EQ(came, arrives);
}

static void communicators(void) {
    MPI_Comm comm;
    for (int i = 0; i < POLICY_COUNT; i++) {
        const char *name = policy_names[i];
        // An adapting policy does nothing before it has seen some messages come late.
        if (strcmp(name, "none") == 0 || strcmp(name, "auto") == 0) continue;
        MPI_Info info = hint(name);
        MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
        MPI_Info_free(&info);
        CHECK(comm_has(comm, name) && comm_has(MPI_COMM_WORLD, "none"));
        for (int round = 0; round < 3; round++) exchange(comm, 1);
        MPI_Comm_free(&comm);
        MPI_Barrier(MPI_COMM_WORLD);
        exchange(MPI_COMM_WORLD, 0);
    }
}

// From phase to phase; a duplicate begins without.
static void phases(void) {
    MPI_Comm comm, copy;
    MPI_Info info = hint("helper");
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    CHECK(comm_has(comm, "none"));
    exchange(comm, 0);
    MPI_Comm_set_info(comm, info);
    exchange(comm, 1);
    exchange(MPI_COMM_WORLD, 0);
    MPI_Comm_dup(comm, &copy);
    CHECK(comm_has(comm, "helper") && comm_has(copy, "none"));
    MPI_Comm_free(&copy);
    MPI_Info_set(info, "cohort_progress", "none");
    MPI_Comm_set_info(comm, info);
    exchange(comm, 0);
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
    MPI_Barrier(MPI_COMM_WORLD);
}

// While the window lives, the ghost that it asks for progresses the rank, whatever the communicator.
static void windows(void) {
    int memory = 0;
    MPI_Win win;
    MPI_Info info = hint("ghost");
    MPI_Win_create(&memory, sizeof memory, 1, info, MPI_COMM_WORLD, &win);
    CHECK(win_has(win, "ghost"));
    exchange(MPI_COMM_WORLD, 1);
    MPI_Info_set(info, "cohort_progress", "none");
    MPI_Win_set_info(win, info);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(win_has(win, "none"));
    exchange(MPI_COMM_WORLD, 0);
    MPI_Info_set(info, "cohort_progress", "goast");
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    CHECK_EQ(class_of(MPI_Win_set_info(win, info)), MPI_ERR_INFO_VALUE);
    CHECK(win_has(win, "none"));
    MPI_Win_free(&win);
    MPI_Info_free(&info);
}

static void wrong(void) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Info info = hint("stael");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK_EQ(class_of(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm)), MPI_ERR_INFO_VALUE);
    CHECK_EQ(class_of(MPI_Comm_set_info(MPI_COMM_WORLD, info)), MPI_ERR_INFO_VALUE);
    CHECK(comm == MPI_COMM_NULL && comm_has(MPI_COMM_WORLD, "none"));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Info_free(&info);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    communicators();
    phases();
    windows();
    wrong();
    return finish();
}
