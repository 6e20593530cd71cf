// Programs that protect memory and open it page by page in a handler of SIGSEGV (dirty tracking, write barriers): the
// handler runs on the task of the rank whose memory it is, for each page, whoever copies the message.
//# ranks: 2 3
//# progress: all
//# nodes: no
// Between nodes the kernel or the receiver's transport writes.
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
enum { PAGE = 4096, PAGES = 1024, LENGTH = PAGE * PAGES };
static char *volatile tracked;
static volatile char opened[PAGES];
static pid_t task;

static void open_page(int signal, siginfo_t *information, void *context) {
    (void)context;
    long offset = (char *)information->si_addr - tracked;
    if (signal != SIGSEGV || offset < 0 || offset >= LENGTH || gettid() != task) _exit(9);
    long page = offset / PAGE;
    if (opened[page]++ || mprotect(tracked + page * PAGE, PAGE, PROT_READ | PROT_WRITE)) _exit(10);
}

static void track(int protection) {
    for (int page = 0; page < PAGES; page++) opened[page] = 0;
    CHECK_EQ(mprotect(tracked, LENGTH, protection), 0);
}

static void check_opened(int bytes) {
    for (int page = 0; page < (bytes + PAGE - 1) / PAGE; page++) CHECK_EQ(opened[page], 1);
    CHECK_EQ(mprotect(tracked, LENGTH, PROT_READ | PROT_WRITE), 0);
}

static void compute(void) {
    struct timespec since, now;
    clock_gettime(CLOCK_MONOTONIC, &since);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - since.tv_sec) * 1000000000L + now.tv_nsec - since.tv_nsec < 3000000);
}

static char value(int index, int round) { return (char)(index * 7 + index / PAGE + round); }

// One message from rank 0 to rank 1; `sends` and `receives`: who protects; `early`: the receive is there first, and its
// rank computes.
static void message(int bytes, MPI_Datatype type, int sends, int receives, int early, int round) {
    MPI_Request request = MPI_REQUEST_NULL;
    int count = type == MPI_CHAR ? bytes : bytes / (4 * PAGE);
    if (rank == 0) {
        for (int i = 0; i < bytes; i++) tracked[i] = value(i, round);
        if (sends) track(PROT_NONE);
    } else if (rank == 1) {
        memset(tracked, -1, LENGTH);
        if (early) MPI_Irecv(tracked, count, type, 0, round, MPI_COMM_WORLD, &request);
        if (receives) track(PROT_READ);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Send(tracked, count, type, 1, round, MPI_COMM_WORLD);
        if (sends && type == MPI_CHAR) check_opened(bytes);
        CHECK_EQ(mprotect(tracked, LENGTH, PROT_READ | PROT_WRITE), 0);
    } else if (rank == 1) {
        if (early) compute();
        else MPI_Irecv(tracked, count, type, 0, round, MPI_COMM_WORLD, &request);
        MPI_Status status;
        MPI_Wait(&request, &status);
        if (receives && type == MPI_CHAR) check_opened(bytes);
        CHECK_EQ(mprotect(tracked, LENGTH, PROT_READ | PROT_WRITE), 0);
        for (int i = 0; i < bytes; i++) {
            int is_data = type == MPI_CHAR || i % (4 * PAGE) < 3 * PAGE;
            CHECK_EQ(tracked[i], is_data ? value(i, round) : (char)-1);
        }
    }
    // Whoever has nothing to do here steals.
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    task = gettid();
    tracked = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(tracked != MAP_FAILED);
    MPI_Datatype pieces, gaps;
    MPI_Type_contiguous(3 * PAGE, MPI_CHAR, &pieces);
    MPI_Type_create_resized(pieces, 0, 4 * PAGE, &gaps);
    MPI_Type_commit(&gaps);
    int round = 0;
    // A message before the handler is set: ours is there when the program sets its own.
    message(LENGTH, MPI_CHAR, 0, 0, 1, round++);
    struct sigaction action = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO};
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    compute();
    static const int lengths[] = {8, 100, 3000, 20000, 60000, 100000, 1 << 20, LENGTH};
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int who = 0; who < 4; who++)
            for (int early = 0; early < 2; early++) message(lengths[i], MPI_CHAR, who & 1, who >> 1, early, round++);
    for (int who = 0; who < 4; who++)
        for (int early = 0; early < 2; early++) message(LENGTH, gaps, who & 1, who >> 1, early, round++);
    MPI_Type_free(&gaps);
    MPI_Type_free(&pieces);
    return finish();
}
