// Where the limit of processes (RLIMIT_NPROC) lets no thread begin, operations on files are done in the calls that
// start them, which is said; that some members have threads and others have not makes no difference.
//# ranks: 1 2 3
//# abi: mpich mpi5 openmpi
// A rank that gives its rights away is none of its node's network any more.
//# nodes: no
//# stdout: passed
//# stderr: no thread can be started: operations on files are done in the calls that start them
#include "check.h"
#include <sys/resource.h>
#include <unistd.h>

enum { COUNT = 50000 };

static MPI_File file[2];
static int out[COUNT], in[COUNT];

static void whole(MPI_Request *request) {
    MPI_Status status;
    int count = -1;
    CHECK_EQ(MPI_Wait(request, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQ(count, COUNT);
}

static void check_file(int which, int seed) {
    memset(in, -1, sizeof in);
    MPI_Offset own = (MPI_Offset)rank * COUNT;
    CHECK_EQ(MPI_File_read_at(file[which], own, in, COUNT, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    for (int at = 0; at < COUNT; at++) CHECK_EQ(in[at], seed + at);
}

static void play(int round) {
    MPI_Request requests[3];
    MPI_Offset own = (MPI_Offset)rank * COUNT;
    int seed = 1000 * round + 100 * rank;
    for (int at = 0; at < COUNT; at++) out[at] = seed + at;
    CHECK_EQ(MPI_File_iwrite_at(file[0], own, out, COUNT, MPI_INT, &requests[0]), MPI_SUCCESS);
    CHECK_EQ(MPI_File_iwrite_at_all(file[1], own, out, COUNT, MPI_INT, &requests[1]), MPI_SUCCESS);
    CHECK_EQ(MPI_File_iread_at_all(file[1], own, in, COUNT, MPI_INT, &requests[2]), MPI_SUCCESS);
    if (rank == round % size) whole(&requests[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    whole(&requests[0]);
    whole(&requests[2]);
    CHECK(memcmp(in, out, sizeof in) == 0);
    if (rank != round % size) whole(&requests[1]);
    check_file(0, seed);
    CHECK_EQ(MPI_File_write_at_all_begin(file[0], own, in, COUNT, MPI_INT), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_write_at_all_end(file[0], in, MPI_STATUS_IGNORE), MPI_SUCCESS);
    check_file(1, seed);
    // One member's trouble is everybody's, also so.
    MPI_File_iwrite_at_all(file[0], rank == 0 ? -1 : own, out, COUNT, MPI_INT, &requests[0]);
    CHECK_EQ(class_of(MPI_Wait(&requests[0], MPI_STATUS_IGNORE)), MPI_ERR_ARG);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* No thread of this rank can begin from now on. */
static void be_alone(void) {
    struct rlimit none = {0, 0};
    CHECK_EQ(setrlimit(RLIMIT_NPROC, &none), 0);
    // The limit is none of an administrator's.
    if (geteuid() == 0) CHECK_EQ(setuid(65534), 0);
}

int main(int argc, char **argv) {
    char name[64];
    int tag = (int)getpid();
    start(&argc, &argv);
    MPI_Bcast(&tag, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int which = 0; which < 2; which++) {
        snprintf(name, sizeof name, "/dev/shm/files-alone-%d-%d", tag, which);
        CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file[which]),
                 MPI_SUCCESS);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) CHECK_EQ(unlink(name), 0);
        MPI_File_set_view(file[which], 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    }
    // First the last member alone, then all.
    if (rank == size - 1) be_alone();
    play(0);
    if (rank != size - 1) be_alone();
    play(1);
    play(2);
    CHECK_EQ(MPI_File_close(&file[0]), MPI_SUCCESS);
    CHECK_EQ(MPI_File_close(&file[1]), MPI_SUCCESS);
    return finish();
}
