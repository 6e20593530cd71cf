// A rank computes and calls nothing of MPI until messages from another node have come: its neighbour, which
// waits, takes them off the network and delivers them, over TCP long ones too, also if the kernel is told late
// (COHORT_NET_NOTIFY=defer). Long messages of the other direction follow; through libfabric those need calls of the
// owner under defer.
// Without thieves nobody takes short messages off the network for a rank that computes.
//# ranks: 3
//# abi: mpi5
//# policies: listed
//# notify: mirror defer
//# timeout: 60
#include "check.h"
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
enum { OWNER, NEIGHBOUR, SENDER, ROUNDS = 20, SHORT = 64, SHORT_BYTES = 1000, LONG = 3, LONG_BYTES = 300000, GAP = 3 };
enum { GO = 1000, BACK = 2000, LIMIT_SECONDS = 40 };

static unsigned char in[SHORT][SHORT_BYTES], away[LONG][LONG_BYTES * GAP], home[LONG][LONG_BYTES * GAP];

static unsigned char pattern(int round, int message, int i) {
    return (unsigned char)(1 + (round * 31 + message * 7 + i + i / 251) % 255);
}

/* Of three long messages one has gaps. */
static int step_of(int message) { return message == 1 ? GAP : 1; }

static void fill(unsigned char *data, int bytes, int step, int round, int message) {
    for (int i = 0; i < bytes; i++) data[(size_t)i * step] = pattern(round, message, i);
}

static void check(const unsigned char *data, int bytes, int step, int round, int message) {
    for (int i = 0; i < bytes; i++) CHECK_EQ(data[(size_t)i * step], pattern(round, message, i));
}

/* Whether the neighbour may take descriptors of the owner: where the system forbids it, only the owner calls. */
static int stealing_is_allowed(void) {
    int pid = getpid(), allowed = 0;
    if (rank == OWNER) {
        MPI_Send(&pid, 1, MPI_INT, NEIGHBOUR, 0, MPI_COMM_WORLD);
        MPI_Recv(&allowed, 1, MPI_INT, NEIGHBOUR, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == NEIGHBOUR) {
        MPI_Recv(&pid, 1, MPI_INT, OWNER, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        long process = syscall(SYS_pidfd_open, pid, 0);
        long copy = process < 0 ? -1 : syscall(SYS_pidfd_getfd, process, 0, 0);
        allowed = copy >= 0;
        if (copy >= 0) close((int)copy);
        if (process >= 0) close((int)process);
        MPI_Send(&allowed, 1, MPI_INT, OWNER, 0, MPI_COMM_WORLD);
    }
    return allowed;
}

static void compute_until(volatile unsigned char *byte, time_t limit) {
    while (*byte == 0) {
        CHECK(time(NULL) < limit);
        usleep(100);
    }
}

/* Whether long messages need no calls of the owner: over TCP the node's connections are everybody's, and what thieves
   withhold writes the root. */
static int node_owns_connections(void) {
    const char *provider = getenv("COHORT_NET_PROVIDER");
    return provider == NULL || strcmp(provider, "direct") == 0;
}

/* Computes until the last byte of every message is there. */
static void compute_until_all_came(void) {
    time_t limit = time(NULL) + LIMIT_SECONDS;
    for (int m = 0; m < SHORT; m++) compute_until(&in[m][SHORT_BYTES - 1], limit);
    for (int m = 0; m < LONG && node_owns_connections(); m++)
        compute_until(&home[m][(size_t)(LONG_BYTES - 1) * step_of(m)], limit);
}

static void own(int round, int allowed, MPI_Datatype gaps) {
    MPI_Request requests[SHORT + 2 * LONG];
    memset(in, 0, sizeof in);
    memset(home, 0, sizeof home);
    for (int m = 0; m < SHORT; m++)
        MPI_Irecv(in[m], SHORT_BYTES, MPI_BYTE, SENDER, m, MPI_COMM_WORLD, &requests[m]);
    for (int m = 0; m < LONG; m++) {
        int one = step_of(m) > 1;
        MPI_Irecv(home[m], one ? 1 : LONG_BYTES, one ? gaps : MPI_BYTE, SENDER, SHORT + m, MPI_COMM_WORLD,
                  &requests[SHORT + m]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (allowed) compute_until_all_came();
    for (int m = 0; m < LONG; m++) {
        int one = step_of(m) > 1;
        fill(away[m], LONG_BYTES, step_of(m), round, BACK + m);
        MPI_Isend(away[m], one ? 1 : LONG_BYTES, one ? gaps : MPI_BYTE, SENDER, BACK + m, MPI_COMM_WORLD,
                  &requests[SHORT + LONG + m]);
    }
    usleep(2000);
    MPI_Waitall(SHORT + 2 * LONG, requests, MPI_STATUSES_IGNORE);
    for (int m = 0; m < SHORT; m++) check(in[m], SHORT_BYTES, 1, round, m);
    for (int m = 0; m < LONG; m++) check(home[m], LONG_BYTES, step_of(m), round, SHORT + m);
}

static void serve(int round) {
    MPI_Request requests[SHORT + 2 * LONG];
    MPI_Barrier(MPI_COMM_WORLD);
    for (int m = 0; m < SHORT; m++) {
        fill(in[m], SHORT_BYTES, 1, round, m);
        MPI_Isend(in[m], SHORT_BYTES, MPI_BYTE, OWNER, m, MPI_COMM_WORLD, &requests[m]);
    }
    for (int m = 0; m < LONG; m++) {
        fill(home[m], LONG_BYTES, 1, round, SHORT + m);
        MPI_Isend(home[m], LONG_BYTES, MPI_BYTE, OWNER, SHORT + m, MPI_COMM_WORLD, &requests[SHORT + m]);
        MPI_Irecv(away[m], LONG_BYTES, MPI_BYTE, OWNER, BACK + m, MPI_COMM_WORLD, &requests[SHORT + LONG + m]);
    }
    MPI_Waitall(SHORT + 2 * LONG, requests, MPI_STATUSES_IGNORE);
    for (int m = 0; m < LONG; m++) check(away[m], LONG_BYTES, 1, round, BACK + m);
    MPI_Send(NULL, 0, MPI_BYTE, NEIGHBOUR, GO, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Datatype gaps;
    start(&argc, &argv);
    MPI_Type_vector(LONG_BYTES, 1, GAP, MPI_BYTE, &gaps);
    MPI_Type_commit(&gaps);
    int allowed = stealing_is_allowed();
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == OWNER) own(round, allowed, gaps);
        if (rank == SENDER) serve(round);
        if (rank == NEIGHBOUR) {
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Recv(NULL, 0, MPI_BYTE, SENDER, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    MPI_Type_free(&gaps);
    return finish();
}
