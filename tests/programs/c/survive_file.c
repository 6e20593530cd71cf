// Ranks die at random moments while all open, write, read and close a file together; each time the
// others shrink the communicator and go on, until two are left. All data of what succeeds is right.
//# ranks: 5
//# abi: mpi5 mpich openmpi
//# progress: none
//# policies: listed
// Ranks that survive each other do no work for others.
//# nodes: no
// Between nodes one of some thirty such jobs did not end (ROADMAP).
//# settings: COHORT_ON_FAILURE=continue
//# stdout: passed
#include "check.h"
#include "survival.h"
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { BYTES = 1 << 20 };
static unsigned char out[BYTES], in[BYTES];
static char name[64];
static int is_apart;
static MPI_File file;

#define TRY(call)                              \
    do {                                       \
        int code_ = (call);                    \
        if (code_ != MPI_SUCCESS) return code_; \
    } while (0)

static void *die(void *when) {
    usleep((unsigned)(size_t)when);
    kill(getpid(), SIGKILL);
    return NULL;
}

// Blocks of members in turns, of so many bytes.
static int set_view(int me, int members, int block) {
    MPI_Datatype bytes, turns;
    MPI_Type_contiguous(block, MPI_BYTE, &bytes);
    MPI_Type_create_resized(bytes, 0, (MPI_Aint)block * members, &turns);
    MPI_Type_commit(&turns);
    int code = MPI_File_set_view(file, (MPI_Offset)block * me, MPI_BYTE, turns, "native", MPI_INFO_NULL);
    MPI_Type_free(&bytes);
    MPI_Type_free(&turns);
    return code;
}

static int use(MPI_Comm comm, int me, int members, int step) {
    static const int blocks[] = {64, 16384, 3};
    MPI_Request request;
    int length = BYTES / 48 * 48;
    TRY(MPI_File_set_atomicity(file, step % 2 && !is_apart));
    TRY(set_view(me, members, blocks[step % 3]));
    memset(out, 16 * step + me, sizeof out);
    memset(in, 255, sizeof in);
    TRY(MPI_File_write_at_all(file, 0, out, length, MPI_BYTE, MPI_STATUS_IGNORE));
    TRY(MPI_File_iread_at_all(file, 0, in, length, MPI_BYTE, &request));
    TRY(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(memcmp(in, out, length) == 0);
    TRY(MPI_File_iwrite_all(file, out, length, MPI_BYTE, &request));
    TRY(MPI_Wait(&request, MPI_STATUS_IGNORE));
    // All that the others have written, too.
    TRY(MPI_Barrier(comm));
    TRY(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    TRY(MPI_File_read_at_all(file, 0, in, blocks[step % 3] * members, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int at = 0; at < blocks[step % 3] * members; at++)
        CHECK_EQ(in[at], (unsigned char)(16 * step + at / blocks[step % 3]));
    TRY(MPI_Barrier(comm));
    // Nodes that survive each other have no shared pointer, and say so.
    int code = MPI_File_write_ordered(file, out, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    return is_apart && class_of(code) == MPI_ERR_UNSUPPORTED_OPERATION ? MPI_SUCCESS : code;
}

static int work(MPI_Comm comm, int me, int members, int step) {
    int code = MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    if (code != MPI_SUCCESS) return code;
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    code = use(comm, me, members, step);
    // Others may be in another call for it.
    if (code != MPI_SUCCESS) CHECK_EQ(MPIX_File_revoke(file), MPI_SUCCESS);
    int closed = MPI_File_close(&file);
    return code == MPI_SUCCESS ? closed : code;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    // survive_file SEED NODES: of several nodes, where a node may go with a rank.
    unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : (unsigned)getpid();
    is_apart = argc > 2;
    if (rank == 0) snprintf(name, sizeof name, "/dev/shm/survive-file-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int members = size; members > 2;) {
        int me, left, step = 0, code = MPI_SUCCESS;
        pthread_t thread;
        MPI_Comm_rank(comm, &me);
        // Once with all.
        CHECK_EQ(work(comm, me, members, step++), MPI_SUCCESS);
        // The last lives until all are through.
        for (int other = 0; me == members - 1 && other < me; other++)
            CHECK_EQ(MPI_Recv(NULL, 0, MPI_INT, other, 1, comm, MPI_STATUS_IGNORE), MPI_SUCCESS);
        if (me < members - 1) CHECK_EQ(MPI_Send(NULL, 0, MPI_INT, members - 1, 1, comm), MPI_SUCCESS);
        seed = seed * 1664525 + 1013904223;
        if (me == members - 1) pthread_create(&thread, NULL, die, (void *)(size_t)(seed / 256 % 20000));
        while (code == MPI_SUCCESS) code = work(comm, me, members, step++);
        CHECK_EQ(MPIX_Comm_revoke(comm), MPI_SUCCESS);
        CHECK(class_of(code) == MPIX_ERR_PROC_FAILED || class_of(code) == MPIX_ERR_REVOKED);
        MPI_Comm smaller;
        CHECK_EQ(MPIX_Comm_shrink(comm, &smaller), MPI_SUCCESS);
        MPI_Comm_size(smaller, &left);
        CHECK(is_apart ? left < members : left == members - 1);
        if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
        comm = smaller;
        members = left;
    }
    if (rank == 0) {
        CHECK_EQ(unlink(name), 0);
        puts("passed");
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
