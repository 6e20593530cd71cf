// Members of a communicator start collectives and compute, calling nothing of MPI, until all
// results are in memory: one rank of each node, which is no member and waits, goes on with them, or
// whoever the policy has for a rank that computes. Policies that promise less, and a network that
// only its owner may use, are only to end with the right results.
//# ranks: 6
//# abi: mpi5
//# timeout: 120
#include "check.h"
#include "policies.h"
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
enum { MEMBERS_MAX = 16, LONGEST = 40000, KINDS = 6, LIMIT_SECONDS = 60, UNSET = -1, OVER = 7 };

static int in[MEMBERS_MAX * LONGEST], out[MEMBERS_MAX * LONGEST];
static int me, members, is_member, is_left_alone;
static MPI_Comm comm, node;

/* Whether somebody is to go on with every collective that a rank has left behind. */
static int acts_for_all(const char *policy) { return strcmp(policy, "none") != 0 && strcmp(policy, "signal") != 0; }

static int value(int member, int i) { return 1 + member * 1000 + i % 1000; }

static int sum(int count, int i) {
    int total = 0;
    for (int member = 0; member < count; member++) total += value(member, i);
    return total;
}

/* What an operation with `count` elements leaves at element i of a member's buffer of results. */
static int expected(int kind, int count, int i) {
    switch (kind) {
    case 0: return value(0, i);
    case 1: return sum(members, i);
    case 2: return value(i / count, i % count);
    case 3: return value(i / count, me * count + i % count);
    case 4: return sum(me + 1, i);
    default: return sum(members, me * count + i);
    }
}

static int results(int kind, int count) { return kind == 2 || kind == 3 ? members * count : count; }

static void prepare(int kind, int count) {
    for (int i = 0; i < members * count; i++) {
        out[i] = value(me, i);
        in[i] = kind == 0 && me == 0 ? value(0, i) : UNSET;
    }
}

static void begin(int kind, int count, MPI_Request *request) {
    switch (kind) {
    case 0: MPI_Ibcast(in, count, MPI_INT, 0, comm, request); break;
    case 1: MPI_Iallreduce(out, in, count, MPI_INT, MPI_SUM, comm, request); break;
    case 2: MPI_Iallgather(out, count, MPI_INT, in, count, MPI_INT, comm, request); break;
    case 3: MPI_Ialltoall(out, count, MPI_INT, in, count, MPI_INT, comm, request); break;
    case 4: MPI_Iscan(out, in, count, MPI_INT, MPI_SUM, comm, request); break;
    default: MPI_Ireduce_scatter_block(out, in, count, MPI_INT, MPI_SUM, comm, request); break;
    }
}

/* Computes until every result is there, if somebody is to bring them; else for a moment. */
static void compute(int kind, int count) {
    time_t limit = time(NULL) + LIMIT_SECONDS;
    for (int i = 0; i < results(kind, count) && is_left_alone; i++) {
        volatile int *result = &in[i];
        while (*result == UNSET) {
            CHECK(time(NULL) < limit);
            usleep(100);
        }
    }
    usleep(200);
}

static void end(int kind, int count, MPI_Request *request) {
    compute(kind, count);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    for (int i = 0; i < results(kind, count); i++) CHECK_EQ(in[i], expected(kind, count, i));
}

static void run_all(void) {
    static const int counts[] = {3, 1000, LONGEST};
    for (int kind = 0; kind < KINDS; kind++) {
        for (int size_of = 0; size_of < 3; size_of++) {
            MPI_Request request;
            prepare(kind, counts[size_of]);
            begin(kind, counts[size_of], &request);
            end(kind, counts[size_of], &request);
        }
    }
    MPI_Request again;
    MPI_Allreduce_init(out, in, 5000, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &again);
    for (int round = 0; round < 3; round++) {
        prepare(1, 5000);
        MPI_Start(&again);
        end(1, 5000, &again);
    }
    MPI_Request_free(&again);
}

/* Whether ranks may take descriptors of each other: where the system forbids it, only owners call the network. */
static int stealing_is_allowed(void) {
    int pid = getpid(), other = 0, allowed, everywhere;
    MPI_Sendrecv(&pid, 1, MPI_INT, rank ^ 1, 0, &other, 1, MPI_INT, rank ^ 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    long process = syscall(SYS_pidfd_open, other, 0);
    long copy = process < 0 ? -1 : syscall(SYS_pidfd_getfd, process, 0, 0);
    allowed = copy >= 0;
    if (copy >= 0) close((int)copy);
    if (process >= 0) close((int)process);
    MPI_Allreduce(&allowed, &everywhere, 1, MPI_INT, MPI_MIN, node);
    return everywhere;
}

int main(int argc, char **argv) {
    int place, here;
    start(&argc, &argv);
    CHECK_EQ(size % 2, 0);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &place);
    MPI_Comm_size(node, &here);
    is_member = place < here - 1;
    MPI_Comm_split(MPI_COMM_WORLD, is_member, rank, &comm);
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &members);
    const char *notify = getenv("COHORT_NET_NOTIFY");
    int owners_call = here < size && notify != NULL && strcmp(notify, "defer") == 0;
    // Within one node the last member does short ones, and not all policies care for long ones.
    int may_steal = stealing_is_allowed() && !owners_call && here < size;
    for (int policy = 0; policy < POLICY_COUNT; policy++) {
        CHECK_EQ(MPIX_Progress_set(MPI_COMM_WORLD, policy_names[policy]), MPI_SUCCESS);
        MPI_Barrier(MPI_COMM_WORLD);
        is_left_alone = may_steal && acts_for_all(policy_names[policy]);
        if (is_member) {
            CHECK(members <= MEMBERS_MAX);
            run_all();
            MPI_Send(NULL, 0, MPI_INT, here - 1, OVER, node);
        } else {
            for (int member = 0; member < here - 1; member++)
                MPI_Recv(NULL, 0, MPI_INT, member, OVER, node, MPI_STATUS_IGNORE);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Comm_free(&comm);
    MPI_Comm_free(&node);
    return finish();
}
