// Ranks die at random moments, by signals or by ending, in the middle of messages and collectives of all kinds; each
// time the others revoke, shrink, agree and go on, until two are left. All data of what succeeds is right.
//# ranks: 6
//# abi: mpi5
//# progress: none
//# policies: listed
// Ranks that survive each other do no work for others.
//# nodes: no
// Jobs of several nodes are in tests/runner/nodes/survival.rs.
//# settings: COHORT_ON_FAILURE=continue
//# timeout: 60
#include "check.h"
#include "survival.h"
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
enum { LONG = 300000, WORDS = 700 };
static char out[LONG], in[LONG];
static int table[64 * WORDS], words[64 * WORDS];
static unsigned seed;

static unsigned draw(void) {
    seed = seed * 1664525 + 1013904223;
    return seed >> 8;
}

static void *die(void *how) {
    unsigned chosen = (unsigned)(size_t)how;
    usleep(chosen / 3 % 3000);
    if (chosen % 3 == 0) kill(getpid(), SIGKILL);
    if (chosen % 3 == 1) kill(getpid(), SIGSEGV);
    _exit(0);
}

static int ring(MPI_Comm comm, int me, int members, int step, int length) {
    int next = (me + 1) % members, last = (me + members - 1) % members, code;
    MPI_Request requests[2];
    memset(out, me + step, length);
    memset(in, 99, length);
    code = MPI_Irecv(in, length, MPI_CHAR, step % 5 ? last : MPI_ANY_SOURCE, step, comm, requests);
    if (code == MPI_SUCCESS) code = MPI_Isend(out, length, MPI_CHAR, next, step, comm, requests + 1);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS) return code;
    for (int i = 0; i < length; i += 97) CHECK_EQ(in[i], (char)(last + step));
    return code;
}

static int collect(MPI_Comm comm, int me, int members, int step) {
    long mine = me + step, sum = 0, i;
    int code = MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
    if (code != MPI_SUCCESS) return code;
    CHECK_EQ(sum, (long)members * (members - 1) / 2 + (long)members * step);
    memset(in, me == step % members ? step : 0, LONG);
    MPI_Request request;
    code = MPI_Ibcast(in, LONG, MPI_CHAR, step % members, comm, &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return code;
    for (i = 0; i < LONG; i += 97) CHECK_EQ(in[i], (char)step);
    for (i = 0; i < members * WORDS; i++) table[i] = me * 1000 + (int)(i / WORDS);
    code = MPI_Alltoall(table, WORDS, MPI_INT, words, WORDS, MPI_INT, comm);
    if (code != MPI_SUCCESS) return code;
    for (i = 0; i < members * WORDS; i++) CHECK_EQ(words[i], i / WORDS * 1000 + me);
    code = MPI_Barrier(comm);
    if (code != MPI_SUCCESS || step % 7) return code;
    MPI_Comm copy;
    code = MPI_Comm_dup(comm, &copy);
    if (code != MPI_SUCCESS) return code;
    // Others may have none: only the members of all of them could use it.
    MPI_Comm_free(&copy);
    return code;
}

// Works until somebody fails.
static void work(MPI_Comm comm, int me, int members) {
    int code = MPI_SUCCESS;
    for (int step = 1; code == MPI_SUCCESS; step++) {
        code = ring(comm, me, members, step, step % 3 == 0 ? LONG : step % 3 == 1 ? 8 : 5000);
        if (code == MPI_SUCCESS) code = collect(comm, me, members, step);
    }
    int class = class_of(code);
    CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_PROC_FAILED_PENDING || class == MPIX_ERR_REVOKED ||
          class == MPI_ERR_IN_STATUS);
    CHECK_EQ(MPIX_Comm_revoke(comm), MPI_SUCCESS);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    // survive_random SEED FIRST: of several nodes, where the first FIRST ranks live on, and a node may go with a rank.
    int first = argc > 2 ? atoi(argv[2]) : 1, is_apart = argc > 2;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int members = size; members > (first > 2 ? first : 2);) {
        int me, flag = 1, left, victim = first + draw() % (members - first);
        unsigned how = draw();
        pthread_t thread;
        MPI_Comm_rank(comm, &me);
        if (me == victim) pthread_create(&thread, NULL, die, (void *)(size_t)how);
        work(comm, me, members);
        MPI_Comm smaller;
        CHECK_EQ(MPIX_Comm_shrink(comm, &smaller), MPI_SUCCESS);
        MPI_Comm_size(smaller, &left);
        if (is_apart) CHECK(left < members && left >= first);
        if (!is_apart) CHECK_EQ(left, members - 1);
        CHECK_EQ(MPIX_Comm_agree(smaller, &flag), MPI_SUCCESS);
        if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
        comm = smaller;
        members = left;
    }
    if (rank == 0) puts("passed");
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
