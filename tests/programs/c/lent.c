// Messages of 4 to 16 KB may be copied from their sender's buffer, but no send of theirs depends on its receiver: what
// comes late finds the data as it was sent, in its place among others, and once.
//# ranks: 2
//# progress: all
//# wait: auto, park
//# nodes: sockets
#include "check.h"
enum { LONGEST = 16384, ROUNDS = 60, FEW = 12 };

static unsigned char out[2 * LONGEST], in[2 * LONGEST];
static int other;

static int length_of(int round) { return round % 3 == 0 ? LONGEST : 4096 + round * 977 % 12288; }

static void fill(int length, int seed) {
    for (int i = 0; i < length; i++) out[i] = (unsigned char)(i * 7 + seed);
}

static int is_from(int length, int seed) {
    for (int i = 0; i < length; i++)
        if (in[i] != (unsigned char)(i * 7 + seed)) return 0;
    return 1;
}

// Longer than any sender waits for its receiver, if late.
static void pause_if(int late) {
    double end = MPI_Wtime() + (late ? 100e-6 : 0);
    while (MPI_Wtime() < end) {}
}

static void receive(int length, int seed) {
    MPI_Status status;
    int count;
    MPI_Recv(in, LONGEST, MPI_BYTE, other, 1, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQ(count, length);
    CHECK(is_from(length, seed));
}

enum way { BY_SEND, BY_WAIT, BY_TEST, BY_TESTALL, WAYS };

// Sends, and writes to the buffer as soon as that is allowed.
static void send(int length, int seed, enum way way) {
    MPI_Request request;
    int done = 0;
    fill(length, seed);
    if (way == BY_SEND) {
        MPI_Send(out, length, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    } else {
        MPI_Isend(out, length, MPI_BYTE, other, 1, MPI_COMM_WORLD, &request);
        if (way == BY_WAIT) MPI_Wait(&request, MPI_STATUS_IGNORE);
        while (way == BY_TEST && !done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        while (way == BY_TESTALL && !done) MPI_Testall(1, &request, &done, MPI_STATUSES_IGNORE);
    }
    memset(out, 0xee, length);
}

// Both send before either receives.
static void cross(enum way way) {
    for (int round = 0; round < ROUNDS; round++) {
        pause_if(round % 5 == rank);
        send(length_of(round), round, way);
        pause_if(round % 7 == 3);
        receive(length_of(round), round);
    }
}

// Many, of which the receiver takes none for a while; short ones between them.
static void line_up(int late) {
    MPI_Status status;
    int count;
    if (rank == 0) {
        for (int i = 0; i < FEW; i++) send(i % 2 ? 1 + i : length_of(i), i, BY_SEND);
    } else {
        pause_if(late);
        for (int i = 0; i < FEW; i++) {
            MPI_Recv(in, LONGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_BYTE, &count);
            CHECK_EQ(count, i % 2 ? 1 + i : length_of(i));
            CHECK(is_from(count, i));
        }
    }
}

// What a probe has told of stays what it was, if the sender gives up waiting behind it.
static void probe(int round, int by_message) {
    int length = length_of(round), count;
    if (rank == 0) {
        send(length, round, round % WAYS);
        return;
    }
    MPI_Status status;
    MPI_Message message;
    if (by_message) MPI_Mprobe(0, 1, MPI_COMM_WORLD, &message, &status);
    else MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQ(count, length);
    pause_if(round % 2);
    if (!by_message) {
        receive(length, round);
        return;
    }
    MPI_Mrecv(in, LONGEST, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    CHECK(is_from(length, round));
}

// A request that is freed while its message is under way.
static void let_go(int round) {
    int length = length_of(round), done = 1;
    if (rank == 0) {
        MPI_Request request;
        fill(length, round);
        MPI_Isend(out, length, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
        MPI_Recv(&done, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        pause_if(round % 2);
        receive(length, round);
        MPI_Send(&done, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    }
}

// A cancelled message is either received or was never there.
static void cancel(int round) {
    int length = length_of(round), cancelled;
    if (rank == 0) {
        MPI_Request request;
        MPI_Status status;
        fill(length, round);
        MPI_Isend(out, length, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
        pause_if(round % 2);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        MPI_Send(&cancelled, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&cancelled, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        int found;
        MPI_Iprobe(0, 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        CHECK_EQ(found, !cancelled);
        if (found) receive(length, round);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// Data with gaps.
static void gaps(int late) {
    static int from[2 * LONGEST], to[2 * LONGEST];
    MPI_Datatype odd;
    MPI_Type_vector(3000, 1, 3, MPI_INT, &odd);
    MPI_Type_commit(&odd);
    for (int i = 0; i < 9000; i++) from[i] = i, to[i] = -1;
    if (rank == 0) {
        MPI_Send(from, 1, odd, 1, 1, MPI_COMM_WORLD);
        memset(from, 0, sizeof from);
    } else {
        pause_if(late);
        MPI_Recv(to, 1, odd, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < 9000; i++) CHECK_EQ(to[i], i % 3 ? -1 : i);
    }
    MPI_Type_free(&odd);
}

static void to_itself(int length) {
    fill(length, 5);
    MPI_Send(out, length, MPI_BYTE, rank, 3, MPI_COMM_WORLD);
    memset(out, 0, length);
    MPI_Recv(in, LONGEST, MPI_BYTE, rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(is_from(length, 5));
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    other = 1 - rank;
    for (enum way way = 0; way < WAYS; way++) cross(way);
    for (int round = 0; round < ROUNDS; round++) {
        line_up(round % 2);
        probe(round, 0);
        probe(round, 1);
        let_go(round);
        cancel(round);
        gaps(round % 2);
    }
    for (int length = 8000; length <= LONGEST; length += 997) to_itself(length);
    return finish();
}
