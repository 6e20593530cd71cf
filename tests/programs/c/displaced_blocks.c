// Blocks of any length, on both sides of each border at which they are posted in another way, and where a receiver has
// too little room.
//# ranks: 1 2 5
#include "check.h"

enum { MOST = 5, LONGEST = 70000 };

static unsigned char byte_of(int from, int to, int at) { return (unsigned char)(31 * from + 7 * to + at); }

// Each member gets one byte more than the one before, and at times the last one nothing.
static int length_of(int member, int least) {
    return size > 1 && member == size - 1 && least % 3 == 0 ? 0 : least + member;
}

// `swapped`: blocks lie in the opposite order of their members.
static void lay_out(int *places, const int *counts, int swapped) {
    for (int i = 0, at = 3; i < size; i++) {
        int member = swapped ? size - 1 - i : i;
        places[member] = at;
        at += counts[member] + 2;
    }
}

static void check_block(const unsigned char *block, int from, int length) {
    CHECK_EQ(block[-1], 0xee);
    for (int at = 0; at < length; at++) CHECK_EQ(block[at], byte_of(from, rank, at));
    CHECK_EQ(block[length], 0xee);
}

static void exchange(int least, unsigned char *send, unsigned char *receive) {
    int sent[MOST], received[MOST], from[MOST], to[MOST];
    MPI_Datatype types[MOST];
    for (int member = 0; member < size; member++) {
        sent[member] = length_of(member, least);
        received[member] = length_of(rank, least);
        types[member] = MPI_BYTE;
    }
    lay_out(from, sent, 1);
    lay_out(to, received, 0);
    for (int member = 0; member < size; member++)
        for (int at = 0; at < sent[member]; at++) send[from[member] + at] = byte_of(rank, member, at);
    for (int form = 0; form < 2; form++) {
        memset(receive, 0xee, (size_t)size * (least + MOST + 2) + 8);
        if (form == 0) MPI_Alltoallv(send, sent, from, MPI_BYTE, receive, received, to, MPI_BYTE, MPI_COMM_WORLD);
        else MPI_Alltoallw(send, sent, from, types, receive, received, to, types, MPI_COMM_WORLD);
        for (int member = 0; member < size; member++) check_block(receive + to[member], member, received[member]);
    }
    for (int root = 0; root < size; root++) {
        memset(receive, 0xee, (size_t)least + MOST + 8);
        MPI_Scatterv(send, sent, from, MPI_BYTE, receive + 3, received[root], MPI_BYTE, root, MPI_COMM_WORLD);
        check_block(receive + 3, root, received[root]);
    }
}

// Whoever has one byte too little is told, gets what there is room for, and nobody else notices.
static void cut(int least, unsigned char *send, unsigned char *receive) {
    int sent[MOST], received[MOST], from[MOST], to[MOST], is_cut = rank == size - 1;
    for (int member = 0; member < size; member++) sent[member] = received[member] = least;
    if (is_cut) received[0]--;
    lay_out(from, sent, 0);
    lay_out(to, received, 0);
    for (int member = 0; member < size; member++)
        for (int at = 0; at < least; at++) send[from[member] + at] = byte_of(rank, member, at);
    memset(receive, 0xee, (size_t)size * (least + 2) + 8);
    int code = MPI_Alltoallv(send, sent, from, MPI_BYTE, receive, received, to, MPI_BYTE, MPI_COMM_WORLD);
    CHECK_EQ(class_of(code), is_cut ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    for (int member = 0; member < size; member++) check_block(receive + to[member], member, received[member]);
    memset(receive, 0xee, (size_t)least + 8);
    code = MPI_Scatterv(send, sent, from, MPI_BYTE, receive + 3, received[0], MPI_BYTE, 0, MPI_COMM_WORLD);
    CHECK_EQ(class_of(code), is_cut ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    check_block(receive + 3, 0, received[0]);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    unsigned char *send = malloc(MOST * (LONGEST + MOST + 2) + 8), *receive = malloc(MOST * (LONGEST + MOST + 2) + 8);
    for (int least = 0; least < 260; least++) exchange(least, send, receive);
    int borders[] = {4096, 16 << 10, (16 << 10) / 4, 65536 - 8 * MOST};
    for (size_t i = 0; i < sizeof borders / sizeof *borders; i++)
        for (int least = borders[i] - 26; least < borders[i] + 3; least++) exchange(least, send, receive);
    int shorter[] = {1, 8, 60, 200, 300, 5000, 20000};
    for (size_t i = 0; i < sizeof shorter / sizeof *shorter && size > 1; i++) cut(shorter[i], send, receive);
    free(send);
    free(receive);
    return finish();
}
