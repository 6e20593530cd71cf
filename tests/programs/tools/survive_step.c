// Ranks die between two instructions of MPI: survive_step PLACE SEED FILE. All do again and again what PLACE names. In
// each round one of them steps through MPI's part of it by the processor's trap flag, and kills itself after a number
// of instructions that the seed draws. Then the others revoke, shrink and agree, check that data arrives, and the next
// round begins, until two are left. For each death a line says where it was.
#include "../c/check.h"
#include "../c/survival.h"
#include <signal.h>
#include <unistd.h>
#include <sys/syscall.h>

enum { LONG = 20000, COUNT = 300, TRIAL_ROUNDS = 2, NEAR = 4000 };

static char out[LONG], in[LONG];
static long numbers[COUNT], sums[COUNT];
static volatile long steps, last_step;
static volatile int is_stepping;
static unsigned seed;

static unsigned draw(void) {
    seed = seed * 1664525 + 1013904223;
    return seed >> 8;
}

// After each instruction of the task that steps.
static void on_step(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info, (void)context;
    if (++steps == last_step) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
}

// Steps from now on, or does not any more. The stack's red zone stays as it is.
#define CHANGE_FLAGS(how) \
    __asm__ volatile("lea -128(%%rsp), %%rsp\n pushfq\n" how "\n popfq\n lea 128(%%rsp), %%rsp" ::: "memory", "cc")

static __attribute__((noinline)) void step(int begins) {
    if (begins) {
        CHANGE_FLAGS("orq $0x100, (%%rsp)");
    } else {
        CHANGE_FLAGS("andq $~0x100, (%%rsp)");
    }
}

typedef struct {
    MPI_Comm comm;
    int me, members, round;
} Place;

// A call of MPI, which is stepped through if it is time for that.
#define TRY(call)                               \
    do {                                        \
        if (is_stepping) step(1);               \
        int code_ = (call);                     \
        if (is_stepping) step(0);               \
        if (code_ != MPI_SUCCESS) return code_; \
    } while (0)

static int ring(const Place *at, int length, int from) {
    int next = (at->me + 1) % at->members, last = (at->me + at->members - 1) % at->members, done;
    MPI_Request requests[2];
    memset(out, at->me + at->round, length);
    memset(in, 99, length);
    TRY(MPI_Irecv(in, length, MPI_CHAR, from == MPI_ANY_SOURCE ? from : last, at->round, at->comm, requests));
    TRY(MPI_Isend(out, length, MPI_CHAR, next, at->round, at->comm, requests + 1));
    TRY(MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE));
    if (!done) TRY(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < length; i += 97) CHECK_EQ(in[i], (char)(last + at->round));
    return MPI_SUCCESS;
}

static int eager(const Place *at) { return ring(at, 8, 0); }
static int blocks(const Place *at) { return ring(at, 5000, 0); }
static int rendezvous(const Place *at) { return ring(at, LONG, 0); }
static int any(const Place *at) { return ring(at, 1000, MPI_ANY_SOURCE); }

static int probes(const Place *at) {
    int next = (at->me + 1) % at->members, last = (at->me + at->members - 1) % at->members, got = -1;
    MPI_Request request;
    MPI_Message message;
    TRY(MPI_Issend(&at->me, 1, MPI_INT, next, 3, at->comm, &request));
    TRY(MPI_Mprobe(last, 3, at->comm, &message, MPI_STATUS_IGNORE));
    TRY(MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
    CHECK_EQ(got, last);
    TRY(MPI_Wait(&request, MPI_STATUS_IGNORE));
    return MPI_SUCCESS;
}

static int reduce(const Place *at) {
    for (int i = 0; i < COUNT; i++) numbers[i] = at->me + i, sums[i] = -1;
    TRY(MPI_Allreduce(numbers, sums, COUNT, MPI_LONG, MPI_SUM, at->comm));
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQ(sums[i], (long)at->members * (at->members - 1) / 2 + (long)at->members * i);
    }
    TRY(MPI_Allreduce(numbers, sums, 3, MPI_LONG, MPI_MAX, at->comm));
    for (int i = 0; i < 3; i++) CHECK_EQ(sums[i], at->members - 1 + i);
    TRY(MPI_Barrier(at->comm));
    return MPI_SUCCESS;
}

static int broadcast(const Place *at) {
    int root = at->round % at->members;
    MPI_Request request;
    memset(in, at->me == root ? at->round : 99, LONG);
    TRY(MPI_Ibcast(in, LONG, MPI_CHAR, root, at->comm, &request));
    TRY(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < LONG; i += 97) CHECK_EQ(in[i], (char)at->round);
    TRY(MPI_Barrier(at->comm));
    return MPI_SUCCESS;
}

static int alltoall(const Place *at) {
    for (int i = 0; i < at->members * 8; i++) numbers[i] = at->me * 1000 + i / 8;
    TRY(MPI_Alltoall(numbers, 8, MPI_LONG, sums, 8, MPI_LONG, at->comm));
    for (int i = 0; i < at->members * 8; i++) CHECK_EQ(sums[i], i / 8 * 1000 + at->me);
    return MPI_SUCCESS;
}

// Where the others have none, nobody can use a communicator or a window: they are freed all the same.
static int duplicate(const Place *at) {
    MPI_Comm copy;
    TRY(MPI_Comm_dup(at->comm, &copy));
    int code = MPI_Barrier(copy);
    TRY(MPI_Comm_free(&copy));
    return code;
}

static int parts(const Place *at) {
    MPI_Comm part;
    TRY(MPI_Comm_split(at->comm, at->me % 2, 0, &part));
    int code = MPI_Barrier(part);
    TRY(MPI_Comm_free(&part));
    return code;
}

static int create_window(const Place *at) {
    MPI_Win win;
    long *mine;
    TRY(MPI_Win_allocate(800, 8, MPI_INFO_NULL, at->comm, &mine, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    int code = MPI_Win_fence(0, win);
    TRY(MPI_Win_free(&win));
    return code;
}

static MPI_Win window = MPI_WIN_NULL;
static long *memory;

static int lock(const Place *at) {
    int target = (at->me + 1) % at->members;
    long one = 1, before;
    TRY(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window));
    TRY(MPI_Put(&one, 1, MPI_LONG, target, 1, 1, MPI_LONG, window));
    TRY(MPI_Accumulate(&one, 1, MPI_LONG, target, 2, 1, MPI_LONG, MPI_SUM, window));
    TRY(MPI_Win_flush(target, window));
    TRY(MPI_Win_unlock(target, window));
    TRY(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window));
    TRY(MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 3, MPI_SUM, window));
    TRY(MPI_Win_unlock(0, window));
    // Who needs nothing of the dead would never hear of it.
    TRY(MPI_Barrier(at->comm));
    return MPI_SUCCESS;
}

static int fence(const Place *at) {
    int target = (at->me + 1) % at->members;
    long value = at->round;
    TRY(MPI_Win_fence(0, window));
    TRY(MPI_Put(&value, 1, MPI_LONG, target, 4, 1, MPI_LONG, window));
    TRY(MPI_Win_fence(0, window));
    CHECK_EQ(memory[4], at->round);
    return MPI_SUCCESS;
}

static int agree(const Place *at) {
    int flag = ~(1 << at->me);
    TRY(MPIX_Comm_agree(at->comm, &flag));
    CHECK_EQ(flag, (int)(~0u << at->members));
    return MPI_SUCCESS;
}

static int shrink(const Place *at) {
    MPI_Comm same;
    int left;
    TRY(MPIX_Comm_shrink(at->comm, &same));
    MPI_Comm_size(same, &left);
    int code = MPI_Barrier(same);
    TRY(MPI_Comm_free(&same));
    return left < at->members ? MPIX_ERR_PROC_FAILED : code;
}

static int allocate(const Place *at) {
    void *blocks[16];
    for (int i = 0; i < 16; i++) TRY(MPI_Alloc_mem(64 << i % 12, MPI_INFO_NULL, blocks + i));
    for (int i = 0; i < 16; i++) TRY(MPI_Free_mem(blocks[i]));
    TRY(MPI_Barrier(at->comm));
    return MPI_SUCCESS;
}

static MPI_File file = MPI_FILE_NULL;
static const char *path;

static int positions(const Place *at) {
    TRY(MPI_File_write_shared(file, &at->me, 1, MPI_INT, MPI_STATUS_IGNORE));
    TRY(MPI_Barrier(at->comm));
    return MPI_SUCCESS;
}

static int names(const Place *at) {
    char port[MPI_MAX_PORT_NAME], name[40];
    snprintf(name, sizeof name, "survive_step %d", at->me);
    TRY(MPI_Open_port(MPI_INFO_NULL, port));
    TRY(MPI_Publish_name(name, MPI_INFO_NULL, port));
    TRY(MPI_Unpublish_name(name, MPI_INFO_NULL, port));
    TRY(MPI_Close_port(port));
    TRY(MPI_Barrier(at->comm));
    return MPI_SUCCESS;
}

static const struct {
    const char *name;
    int (*once)(const Place *);
} PLACES[] = {{"eager", eager},   {"blocks", blocks},       {"rendezvous", rendezvous}, {"any", any},
              {"probes", probes}, {"reduce", reduce},       {"broadcast", broadcast},   {"alltoall", alltoall},
              {"dup", duplicate},       {"split", parts},         {"create", create_window},  {"lock", lock},
              {"fence", fence},   {"agree", agree},         {"shrink", shrink},         {"allocate", allocate},
              {"files", positions}, {"names", names}};

static int is_of_failure(int code) {
    int class = class_of(code);
    return class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_PROC_FAILED_PENDING || class == MPIX_ERR_REVOKED ||
           class == MPI_ERR_IN_STATUS;
}

// One death: `victim` steps through a round to count its instructions, and dies in a later one.
static void lose(Place at, int (*once)(const Place *), int victim, unsigned drawn) {
    int code = MPI_SUCCESS;
    for (at.round = 1; code == MPI_SUCCESS; at.round++) {
        int is_victim = at.me == victim;
        if (is_victim && at.round == TRIAL_ROUNDS) steps = last_step = 0, is_stepping = 1;
        if (is_victim && at.round == TRIAL_ROUNDS + 1) {
            // Near the beginning or near the end: between them, what is long is copied.
            long counted = steps, some = 1 + drawn / 2 % (counted < NEAR ? counted : NEAR);
            long last = drawn % 2 ? some : counted - some + 1;
            fprintf(stderr, "rank %d dies after %ld of %ld\n", rank, last, counted);
            steps = 0, last_step = last, is_stepping = 1;
        }
        code = once(&at);
        if (at.round == TRIAL_ROUNDS) is_stepping = 0;
    }
    CHECK(is_of_failure(code));
}

static void open_objects(MPI_Comm comm, const char *place) {
    if (strcmp(place, "lock") == 0 || strcmp(place, "fence") == 0) {
        CHECK_EQ(MPI_Win_allocate(800, 8, MPI_INFO_NULL, comm, &memory, &window), MPI_SUCCESS);
        MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    }
    if (strcmp(place, "files") == 0) {
        int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
        CHECK_EQ(MPI_File_open(comm, path, mode, MPI_INFO_NULL, &file), MPI_SUCCESS);
    }
}

static void close_objects(void) {
    if (window != MPI_WIN_NULL) MPI_Win_free(&window);
    // Closing is for all who have opened it.
    if (file != MPI_FILE_NULL) MPI_File_close(&file);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (argc < 4) return 2;
    size_t which = 0, all = sizeof PLACES / sizeof *PLACES;
    while (which < all && strcmp(argv[1], PLACES[which].name) != 0) which++;
    if (which == all) return 2;
    seed = (unsigned)atoi(argv[2]);
    path = argv[3];
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < 10; i++) draw();
    for (int members = size; members > 2; members--) {
        Place at = {.comm = comm, .members = members};
        MPI_Comm_rank(comm, &at.me);
        int victim = draw() % members, left, flag = 1;
        unsigned drawn = draw();
        open_objects(comm, argv[1]);
        lose(at, PLACES[which].once, victim, drawn);
        CHECK_EQ(MPIX_Comm_revoke(comm), MPI_SUCCESS);
        MPI_Comm smaller;
        CHECK_EQ(MPIX_Comm_shrink(comm, &smaller), MPI_SUCCESS);
        close_objects();
        MPI_Comm_size(smaller, &left);
        CHECK_EQ(left, members - 1);
        CHECK_EQ(MPIX_Comm_agree(smaller, &flag), MPI_SUCCESS);
        if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
        comm = smaller;
        // All is well with those who are left.
        Place next = {.comm = comm, .members = left, .round = 1};
        MPI_Comm_rank(comm, &next.me);
        CHECK_EQ(reduce(&next), MPI_SUCCESS);
        CHECK_EQ(rendezvous(&next), MPI_SUCCESS);
    }
    int me;
    MPI_Comm_rank(comm, &me);
    if (me == 0) puts("passed");
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
