// Messages of 7 to 17 KB whose receiver waits while they are written come whole: with other tags before them, to
// buffers that are too short, with gaps, from anybody, in bursts beyond the ring, and between threads. What stands
// behind a message in its buffer stays as it is.
//# ranks: 2 3
//# progress: none steal thread
#include "check.h"
#include <pthread.h>
enum { LONGEST = 17 << 10, ROOM = 20 << 10, ROUNDS = 400, BURST = 150 };

static unsigned state = 54321;

static unsigned draw(unsigned below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

/* Around the ends of pieces, and any. */
static int draw_length(void) {
    static const int edges[] = {8 << 10, 12 << 10, 16 << 10};
    return draw(2) ? edges[draw(3)] + (int)draw(3) - 1 : (7 << 10) + (int)draw(10 << 10);
}

static unsigned char byte_at(int round, int i) { return (unsigned char)(round * 37 + i + (i >> 8) * 3); }

static void fill(unsigned char *out, int round, int length) {
    for (int i = 0; i < length; i++) out[i] = byte_at(round, i);
}

static void verify(const unsigned char *in, int round, int length, int room) {
    int right = 0;
    while (right < length && in[right] == byte_at(round, right)) right++;
    CHECK_EQ(right, length);
    for (int i = length; i < room; i++) CHECK_EQ(in[i], 0xa5);
}

static void send(int round, int length, int to, int tag) {
    static unsigned char out[ROOM];
    fill(out, round, length);
    MPI_Send(out, length, MPI_BYTE, to, tag, MPI_COMM_WORLD);
    memset(out, 0, (size_t)length);
}

static void receive(int round, int length, int from, int tag, int actual) {
    static unsigned char in[ROOM];
    MPI_Status status;
    int count;
    memset(in, 0xa5, sizeof in);
    MPI_Recv(in, ROOM, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQ(count, length);
    CHECK_EQ(status.MPI_SOURCE, actual);
    verify(in, round, length, ROOM);
}

/* There and back, so that each receiver waits. */
static void there_and_back(int round, int length, int is_any) {
    for (int i = 0; i < 8; i++) {
        if (rank == 0) {
            send(round + i, length, 1, 1);
            receive(round - i, length + 1, is_any ? MPI_ANY_SOURCE : 1, 1, 1);
        } else {
            receive(round + i, length, is_any ? MPI_ANY_SOURCE : 0, 1, 0);
            send(round - i, length + 1, 0, 1);
        }
    }
}

/* The receiver waits for the second message while the first one is written, which is short enough to be kept. */
static void other_tag_first(int round, int length) {
    if (length > 16 << 10) length = 16 << 10;
    if (rank == 0) {
        send(round, length, 1, 2);
        send(round + 1, length, 1, 3);
        receive(round, 1, 1, 4, 1);
    } else {
        receive(round + 1, length, 0, 3, 0);
        receive(round, length, 0, 2, 0);
        send(round, 1, 0, 4);
    }
}

/* Too short by any number of bytes; the next message is as it should be. */
static void too_short(int round, int length) {
    if (rank == 0) {
        receive(round, 1, 1, 5, 1);
        send(round, length, 1, 5);
        send(round + 1, length, 1, 5);
    } else {
        static unsigned char in[ROOM];
        int room = 1 + (int)draw((unsigned)length - 1);
        memset(in, 0xa5, sizeof in);
        send(round, 1, 0, 5);
        CHECK_EQ(class_of(MPI_Recv(in, room, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE)), MPI_ERR_TRUNCATE);
        for (int i = room; i < ROOM; i++) CHECK_EQ(in[i], 0xa5);
        receive(round + 1, length, 0, 5, 0);
    }
}

/* Every other integer, at either end. */
static void with_gaps(int round, int length) {
    static int data[2 * ROOM / 4];
    int count = length / 4, is_sender = rank == 0;
    MPI_Datatype every_other;
    MPI_Type_vector(count, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    for (int has_gaps = 0; has_gaps < 2; has_gaps++) {
        int step = is_sender == has_gaps ? 2 : 1;
        MPI_Datatype type = step == 2 ? every_other : MPI_INT;
        for (int i = 0; i < 2 * count; i++) data[i] = is_sender && i % step == 0 ? round + i / step : -1;
        if (is_sender) MPI_Send(data, step == 2 ? 1 : count, type, 1, 6, MPI_COMM_WORLD);
        else MPI_Recv(data, step == 2 ? 1 : count, type, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < count; i++) CHECK_EQ(data[i * step], round + i);
        for (int i = 0; i + 1 < count && step == 2; i++) CHECK_EQ(data[2 * i + 1], -1);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Type_free(&every_other);
}

/* More messages than the ring has cells, of which the first are received as they come. */
static void burst(int round, int length) {
    if (rank == 0) {
        for (int i = 0; i < BURST; i++) send(round + i, length - i, 1, 7);
        receive(round, 1, 1, 7, 1);
    } else {
        int present = 0;
        while (!present) MPI_Iprobe(0, 7, MPI_COMM_WORLD, &present, MPI_STATUS_IGNORE);
        for (int i = 0; i < BURST; i++) receive(round + i, length - i, 0, 7, 0);
        send(round, 1, 0, 7);
    }
}

enum { THREADS = 3 };

/* Each thread with the same one of the other rank, with a tag of its own. */
static void *in_a_thread(void *given) {
    int mine = (int)(size_t)given, peer = 1 - rank;
    unsigned char *data = malloc(ROOM);
    for (int i = 0; i < 50; i++) {
        int length = 8000 + 150 * i;
        for (int turn = 0; turn < 2; turn++) {
            if (turn == rank) {
                fill(data, i + mine, length);
                MPI_Send(data, length, MPI_BYTE, peer, 10 + mine, MPI_COMM_WORLD);
            } else {
                memset(data, 0xa5, ROOM);
                MPI_Recv(data, ROOM, MPI_BYTE, peer, 10 + mine, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                verify(data, i + mine, length, ROOM);
            }
        }
    }
    free(data);
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    /* All of them draw the same. The others leave the CPUs to these two, or take them. */
    for (int round = 0; round < ROUNDS && rank < 2; round++) {
        int length = draw_length();
        unsigned kind = draw(6), before = state;
        switch (kind) {
        case 0: there_and_back(round, length, 0); break;
        case 1: there_and_back(round, length, 1); break;
        case 2: other_tag_first(round, length); break;
        case 3: too_short(round, length); break;
        case 4: if (size == 2) with_gaps(round, length); break;
        default: burst(round, length);
        }
        state = before;
    }
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS && rank < 2; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, in_a_thread, (void *)i), 0);
    for (int i = 0; i < THREADS && rank < 2; i++) pthread_join(threads[i], NULL);
    return finish();
}
