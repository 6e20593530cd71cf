// Short messages that follow each other quickly may go together. The last of them arrive although their sender makes
// no further MPI call before they have: it waits for files of the receivers'. It sends to all others in turn, or is
// the root of broadcasts.
//# ranks: 2
//# progress: none steal
// libfabric's networks move nothing between calls.
//# nodes: sockets
#include "check.h"
#include <unistd.h>

enum { ROUNDS = 20, MOST = 60, RANKS = 8 };

static char path[64];
static long values[MOST];

static void name_file(char *name, int of) { snprintf(name, 80, "%s.%d", path, of); }

static void await_files(void) {
    for (int of = 1; of < size; of++) {
        char name[80];
        name_file(name, of);
        int waits = 0;
        for (; access(name, F_OK) != 0 && waits < 20000; waits++) usleep(1000);
        CHECK(waits < 20000);
        unlink(name);
    }
}

static void make_file(void) {
    char name[80];
    name_file(name, rank);
    FILE *file = fopen(name, "w");
    CHECK(file != NULL);
    fclose(file);
}

static void send_all(int count) {
    MPI_Request requests[MOST * RANKS];
    int many = 0;
    for (int i = 0; i < count; i++) {
        for (int to = 1; to < size; to++) {
            MPI_Isend(&values[i], 1, MPI_LONG, to, i % 3, MPI_COMM_WORLD, &requests[many++]);
        }
    }
    await_files();
    MPI_Waitall(many, requests, MPI_STATUSES_IGNORE);
}

static void receive_all(int count) {
    for (int i = 0; i < count; i++) {
        MPI_Recv(&values[i], 1, MPI_LONG, 0, i % 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void broadcast_all(int count) {
    for (int i = 0; i < count; i++) MPI_Bcast(&values[i], 1, MPI_LONG, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK(size <= RANKS);
    if (rank == 0) snprintf(path, sizeof path, "/tmp/burst_left.%d", (int)getpid());
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int round = 0; round < 2 * ROUNDS; round++) {
        int count = round / 2 < 10 ? round / 2 + 1 : MOST, is_broadcast = round % 2;
        for (int i = 0; i < count; i++) values[i] = rank == 0 ? round * 1000 + i : -1;
        if (is_broadcast) {
            broadcast_all(count);
            if (rank == 0) await_files();
        } else if (rank == 0) {
            send_all(count);
        } else {
            receive_all(count);
        }
        for (int i = 0; i < count; i++) CHECK(values[i] == round * 1000 + i);
        if (rank != 0) make_file();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return finish();
}
