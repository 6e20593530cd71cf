// Messages of 8 KB to 1 MB keep their content and their order, whichever way their data takes: blocking, exchanged and
// nonblocking sends, and synchronous ones, of buffers that are filled again as soon as they are free, to receives that
// are posted before, after or too short, with and without gaps. Cancelled receives take nothing, and nobody receives
// cancelled sends. Several nonblocking and persistent sends are under way at a time, some with no request left.
//# ranks: 2 3 4 6
//# progress: none steal auto thread
#include "check.h"
enum { LONGEST = 1 << 20, ROUNDS = 100, GUARD = 64 };

static unsigned state = 12345;

static unsigned draw(unsigned below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

/* Lengths around those at which messages change their ways, and any. */
static int draw_length(void) {
    static const int edges[] = {8 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 512 << 10, 1 << 20};
    if (draw(2) == 0) return 8192 + (int)draw(LONGEST - 8192);
    int length = edges[draw(7)] + (int)draw(3) - 1;
    return length < LONGEST ? length : LONGEST;
}

static unsigned char byte_at(int from, int round, int i) {
    return (unsigned char)(from * 31 + round * 7 + i + (i >> 8) * 3 + (i >> 16) * 5);
}

static void fill(unsigned char *out, int from, int round, int length) {
    for (int i = 0; i < length; i++) out[i] = byte_at(from, round, i);
}

/* The first `length` bytes have come, and nothing behind them was written. */
static void verify(unsigned char *in, int from, int round, int length) {
    int right = 0;
    while (right < length && in[right] == byte_at(from, round, right)) right++;
    CHECK_EQ(right, length);
    for (int i = length; i < length + GUARD; i++) CHECK_EQ(in[i], 0xa5);
    memset(in, 0xa5, (size_t)length + GUARD);
}

static unsigned char *out, *in;

/* One message from each rank to the next, the even ranks first. */
static void send_on(int round, int length, int synchronous) {
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    MPI_Status status;
    for (int step = 0; step < 2; step++) {
        if (rank % 2 == step) {
            fill(out, rank, round, length);
            if (synchronous) MPI_Ssend(out, length, MPI_BYTE, next, 1, MPI_COMM_WORLD);
            else MPI_Send(out, length, MPI_BYTE, next, 1, MPI_COMM_WORLD);
            memset(out, 0, (size_t)length);
        } else if (last % 2 == step) {
            MPI_Recv(in, LONGEST, MPI_BYTE, last, 1, MPI_COMM_WORLD, &status);
            int count;
            MPI_Get_count(&status, MPI_BYTE, &count);
            CHECK_EQ(count, length);
            verify(in, last, round, length);
        }
        /* Of an odd number of ranks the last one and the first are both even. */
        if (size % 2 == 1 && step == 0 && rank == 0) {
            MPI_Recv(in, LONGEST, MPI_BYTE, last, 1, MPI_COMM_WORLD, &status);
            verify(in, last, round, length);
        }
    }
}

static void exchange(int round, int length) {
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    fill(out, rank, round, length);
    MPI_Sendrecv(out, length, MPI_BYTE, next, 2, in, LONGEST, MPI_BYTE, last, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    memset(out, 0, (size_t)length);
    verify(in, last, round, length);
}

/* A nonblocking send is under way to the next rank while a blocking one overtakes nothing. */
static void mixed(int round, int length) {
    int next = (rank + 1) % size, last = (rank + size - 1) % size, half = length / 2;
    MPI_Request requests[2];
    MPI_Irecv(in, half, MPI_BYTE, last, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in + LONGEST, length, MPI_BYTE, last, 3, MPI_COMM_WORLD, &requests[1]);
    fill(out, rank, round, half);
    fill(out + LONGEST, rank, round + 1, length);
    MPI_Request sent;
    MPI_Isend(out, half, MPI_BYTE, next, 3, MPI_COMM_WORLD, &sent);
    MPI_Send(out + LONGEST, length, MPI_BYTE, next, 3, MPI_COMM_WORLD);
    memset(out + LONGEST, 0, (size_t)length);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    verify(in, last, round, half);
    verify(in + LONGEST, last, round + 1, length);
}

/* Into every other integer. */
static void with_gaps(int round, int length) {
    int next = (rank + 1) % size, last = (rank + size - 1) % size, count = length / 8;
    MPI_Datatype every_other;
    MPI_Type_vector(count, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    int *sent = (int *)out, *came = (int *)in;
    for (int i = 0; i < count; i++) sent[i] = rank * 1000003 + round + i;
    MPI_Sendrecv(sent, count, MPI_INT, next, 4, came, 1, every_other, last, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++) CHECK_EQ(came[2 * i], last * 1000003 + round + i);
    for (int i = 0; i + 1 < count; i++) CHECK_EQ(came[2 * i + 1], (int)0xa5a5a5a5);
    memset(in, 0xa5, (size_t)length + GUARD);
    MPI_Type_free(&every_other);
}

/* Between ranks 0 and 1: a receive that is too short, behind one that was cancelled. */
static void cut_off(int round, int length) {
    int kept = 1 + (int)draw((unsigned)length - 1);
    if (rank == 0) {
        fill(out, 0, round, length);
        MPI_Send(out, length, MPI_BYTE, 1, 5, MPI_COMM_WORLD);
        memset(out, 0, (size_t)length);
    } else if (rank == 1) {
        MPI_Request never;
        MPI_Status status;
        int is_cancelled;
        MPI_Irecv(in + LONGEST, LONGEST, MPI_BYTE, 0, 6, MPI_COMM_WORLD, &never);
        int code = MPI_Recv(in, kept, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &status);
        CHECK_EQ(class_of(code), MPI_ERR_TRUNCATE);
        MPI_Cancel(&never);
        MPI_Wait(&never, &status);
        MPI_Test_cancelled(&status, &is_cancelled);
        CHECK(is_cancelled);
        for (int i = kept; i < kept + GUARD; i++) CHECK_EQ(in[i], 0xa5);
        memset(in, 0xa5, (size_t)kept);
    }
}

enum { FLOCK = 6, SHARE = LONGEST / FLOCK };

/* How the sends of a flock are started. */
enum way { ISEND, ISSEND, PERSISTENT, FREED, WAYS };

static void start_send(enum way way, unsigned char *data, int length, int to, MPI_Request *request) {
    switch (way) {
    case ISSEND: MPI_Issend(data, length, MPI_BYTE, to, 7, MPI_COMM_WORLD, request); break;
    case PERSISTENT:
        MPI_Send_init(data, length, MPI_BYTE, to, 7, MPI_COMM_WORLD, request);
        MPI_Start(request);
        break;
    default: MPI_Isend(data, length, MPI_BYTE, to, 7, MPI_COMM_WORLD, request);
    }
    if (way == FREED) MPI_Request_free(request);
}

/* Several messages from each rank to the next at a time, in order, three times over. Their buffers are filled again as
 * soon as they are free: after the wait, or when the receiver has said so. Some receives come late, some
 * take a matched message. */
static void flock(int round, enum way way, int late) {
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    for (int time = 0; time < 3; time++) {
        MPI_Request sends[FLOCK], receives[FLOCK];
        int lengths[FLOCK];
        for (int i = 0; i < FLOCK; i++) lengths[i] = 12000 + (int)draw(SHARE - 12000 - GUARD);
        for (int i = 0; i < FLOCK && !late; i++)
            MPI_Irecv(in + i * SHARE, SHARE, MPI_BYTE, last, 7, MPI_COMM_WORLD, &receives[i]);
        for (int i = 0; i < FLOCK; i++) {
            fill(out + i * SHARE, rank, round + i + time, lengths[i]);
            start_send(way, out + i * SHARE, lengths[i], next, &sends[i]);
        }
        for (int i = 0; i < FLOCK && late; i++) {
            MPI_Message message;
            MPI_Status status;
            int is_odd = i % 2 == 1;
            if (is_odd) MPI_Mprobe(last, 7, MPI_COMM_WORLD, &message, &status);
            if (is_odd) MPI_Imrecv(in + i * SHARE, SHARE, MPI_BYTE, &message, &receives[i]);
            else MPI_Irecv(in + i * SHARE, SHARE, MPI_BYTE, last, 7, MPI_COMM_WORLD, &receives[i]);
        }
        MPI_Waitall(FLOCK, receives, MPI_STATUSES_IGNORE);
        int done = 1;
        MPI_Sendrecv(&done, 1, MPI_INT, last, 8, &done, 1, MPI_INT, next, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (way != FREED) MPI_Waitall(FLOCK, sends, MPI_STATUSES_IGNORE);
        memset(out, 0, LONGEST);
        for (int i = 0; i < FLOCK; i++) {
            if (way == PERSISTENT) MPI_Request_free(&sends[i]);
            verify(in + i * SHARE, last, round + i + time, lengths[i]);
        }
    }
}

/* A send that is done may be filled again at once, while its receiver is still behind. */
static void one_by_one(int round, int length) {
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    for (int time = 0; time < 4; time++) {
        MPI_Request sent, came;
        MPI_Irecv(in, LONGEST, MPI_BYTE, last, 9, MPI_COMM_WORLD, &came);
        fill(out, rank, round + time, length);
        MPI_Isend(out, length, MPI_BYTE, next, 9, MPI_COMM_WORLD, &sent);
        for (int is_sent = 0; !is_sent && time % 2 == 0;) MPI_Test(&sent, &is_sent, MPI_STATUS_IGNORE);
        MPI_Wait(&sent, MPI_STATUS_IGNORE);
        memset(out, 0, (size_t)length);
        MPI_Wait(&came, MPI_STATUS_IGNORE);
        verify(in, last, round + time, length);
    }
}

/* Nobody receives a cancelled send, and the next ones have their blocks. */
static void withdrawn(int round, int length) {
    int next = (rank + 1) % size, last = (rank + size - 1) % size, is_cancelled;
    MPI_Request sends[FLOCK], came;
    MPI_Status status;
    fill(out, rank, round, length);
    for (int i = 0; i < FLOCK; i++) MPI_Issend(out, length, MPI_BYTE, next, 10, MPI_COMM_WORLD, &sends[i]);
    for (int i = 0; i < FLOCK; i++) {
        MPI_Cancel(&sends[i]);
        MPI_Wait(&sends[i], &status);
        MPI_Test_cancelled(&status, &is_cancelled);
        CHECK(is_cancelled);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    memset(out, 0, (size_t)length);
    fill(out, rank, round + 1, length);
    MPI_Irecv(in, LONGEST, MPI_BYTE, last, 10, MPI_COMM_WORLD, &came);
    MPI_Isend(out, length, MPI_BYTE, next, 10, MPI_COMM_WORLD, sends);
    MPI_Wait(sends, MPI_STATUS_IGNORE);
    memset(out, 0, (size_t)length);
    MPI_Wait(&came, MPI_STATUS_IGNORE);
    verify(in, last, round + 1, length);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Between ranks 0 and 1: nonblocking sends to receives that are too short. */
static void cut_off_later(int round, int length) {
    int kept = 1 + (int)draw((unsigned)length - 1);
    for (int time = 0; time < 3; time++) {
        MPI_Request request;
        if (rank == 0) {
            fill(out, 0, round, length);
            MPI_Isend(out, length, MPI_BYTE, 1, 11, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            memset(out, 0, (size_t)length);
        } else if (rank == 1) {
            MPI_Irecv(in, kept, MPI_BYTE, 0, 11, MPI_COMM_WORLD, &request);
            CHECK_EQ(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)), MPI_ERR_TRUNCATE);
            for (int i = kept; i < kept + GUARD; i++) CHECK_EQ(in[i], 0xa5);
            memset(in, 0xa5, (size_t)kept);
        }
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    out = calloc(2, LONGEST);
    in = malloc(2 * LONGEST + GUARD);
    CHECK(out != NULL && in != NULL);
    memset(in, 0xa5, 2 * LONGEST + GUARD);
    for (int round = 0; round < ROUNDS; round++) {
        int length = draw_length();
        switch (draw(10)) {
        case 0: send_on(round, length, 0); break;
        case 1: send_on(round, length, 1); break;
        case 2: exchange(round, length); break;
        case 3: mixed(round, length); break;
        case 4: with_gaps(round, length); break;
        case 5: flock(round, (enum way)draw(WAYS), (int)draw(2)); break;
        case 6: one_by_one(round, length); break;
        case 7: withdrawn(round, length); break;
        case 8: cut_off_later(round, length); break;
        default: cut_off(round, length);
        }
    }
    free(out);
    free(in);
    return finish();
}
