// Long messages end while a program calls nothing of MPI: the receiver computes until the last byte is in its buffer,
// and the sender until the receiver says, by a file, that its receive is complete. No rank is idle, so it is the
// thread, the signal or the dedicated worker of the policy that has to take the message to its end. Under other
// policies the messages are only to arrive.
//# ranks: 2
//# abi: mpi5
//# policies: listed
//# notify: mirror defer
//# timeout: 120
#include "check.h"
#include "policies.h"
#include <fcntl.h>
#include <time.h>
#include <unistd.h>
enum { RECEIVER, SENDER, BYTES = 1 << 20, ROUNDS = 4, LIMIT_SECONDS = 60, GO = 1, DATA = 2 };

static unsigned char buffer[BYTES];
static char path[64];

/* Whether somebody acts for a rank that computes, although no rank waits. */
static int acts(const char *policy) {
    return strcmp(policy, "steal") != 0 && strcmp(policy, "auto") != 0 && strcmp(policy, "none") != 0;
}

static unsigned char last_byte(int round) { return (unsigned char)(1 + round); }

/* The receiver computes until the message is there. */
static void receive(int round, int computes) {
    MPI_Request request;
    volatile unsigned char *last = &buffer[BYTES - 1];
    *last = 0;
    MPI_Irecv(buffer, BYTES, MPI_BYTE, SENDER, DATA, MPI_COMM_WORLD, &request);
    MPI_Send(NULL, 0, MPI_BYTE, SENDER, GO, MPI_COMM_WORLD);
    time_t limit = time(NULL) + LIMIT_SECONDS;
    while (computes && *last == 0) CHECK(time(NULL) < limit);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQ(*last, last_byte(round));
}

/* The sender computes until the receiver's wait is over. */
static void send(int round, int computes) {
    MPI_Request request;
    buffer[BYTES - 1] = last_byte(round);
    MPI_Recv(NULL, 0, MPI_BYTE, RECEIVER, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Isend(buffer, BYTES, MPI_BYTE, RECEIVER, DATA, MPI_COMM_WORLD, &request);
    time_t limit = time(NULL) + LIMIT_SECONDS;
    while (computes && access(path, F_OK) != 0) CHECK(time(NULL) < limit);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (computes) unlink(path);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (rank == SENDER) snprintf(path, sizeof path, "/tmp/cohort-left-long-%d-%ld", getpid(), (long)time(NULL));
    MPI_Bcast(path, sizeof path, MPI_CHAR, SENDER, MPI_COMM_WORLD);
    for (int policy = 0; policy < POLICY_COUNT; policy++) {
        const char *name = policy_names[policy];
        CHECK_EQ(MPIX_Progress_set(MPI_COMM_WORLD, name), MPI_SUCCESS);
        for (int round = 0; round < ROUNDS; round++) {
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == RECEIVER) receive(round, acts(name));
            if (rank == SENDER) send(round, 0);
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == SENDER) send(round, acts(name));
            if (rank == RECEIVER) {
                receive(round, 0);
                if (acts(name)) close(open(path, O_CREAT | O_WRONLY, 0600));
            }
        }
    }
    return finish();
}
