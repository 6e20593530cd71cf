// Threads use files at the same time: each its own together with those of other ranks, all of them the individual and
// the shared pointer of one. No record is torn, lost or written twice.
//# ranks: 1 3
//# abi: mpich mpi5 openmpi
//# libs: -lpthread
//# stdout: passed
#include "check.h"
#include <pthread.h>
#include <unistd.h>

enum { THREADS = 3, TURNS = 20, RECORD = 96, BLOCK = 40 };

static char name[64];
static MPI_Comm comms[THREADS];
static MPI_File common;
static void (*task)(int thread);

static MPI_File opened(MPI_Comm comm, int number, int mode) {
    char own[80];
    MPI_File file;
    snprintf(own, sizeof own, "%s-%d", name, number);
    CHECK_EQ(MPI_File_open(comm, own, mode | MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_SUCCESS);
    return file;
}

/* A file of each thread: opened, written in blocks that alternate with those of other ranks, read, closed. */
static void own_files(int thread) {
    unsigned char out[BLOCK * TURNS], in[BLOCK * TURNS];
    MPI_Status status;
    MPI_Datatype blocks;
    MPI_Type_contiguous(BLOCK, MPI_BYTE, &blocks);
    MPI_Type_create_resized(blocks, 0, (MPI_Aint)BLOCK * size, &blocks);
    MPI_Type_commit(&blocks);
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_File file = opened(comms[thread], thread, MPI_MODE_DELETE_ON_CLOSE);
        CHECK_EQ(MPI_File_set_view(file, rank * BLOCK, MPI_BYTE, blocks, "native", MPI_INFO_NULL), MPI_SUCCESS);
        memset(out, 1 + rank + size * (thread + THREADS * turn) % 200, sizeof out);
        CHECK_EQ(MPI_File_write_all(file, out, sizeof out, MPI_BYTE, &status), MPI_SUCCESS);
        CHECK_EQ(MPI_File_read_at_all(file, 0, in, sizeof in, MPI_BYTE, &status), MPI_SUCCESS);
        CHECK(memcmp(in, out, sizeof in) == 0);
        CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    }
    MPI_Type_free(&blocks);
}

static void fill(unsigned char *record, int thread, int turn) {
    record[0] = (unsigned char)(1 + rank);
    record[1] = (unsigned char)thread;
    record[2] = (unsigned char)turn;
    memset(record + 3, 7 * rank + 5 * thread + turn, RECORD - 3);
}

static void individual(int thread) {
    unsigned char record[RECORD];
    MPI_Status status;
    for (int turn = 0; turn < TURNS; turn++) {
        fill(record, thread, turn);
        CHECK_EQ(MPI_File_write(common, record, RECORD, MPI_BYTE, &status), MPI_SUCCESS);
    }
}

static void shared(int thread) {
    unsigned char record[RECORD];
    MPI_Status status;
    MPI_Request request;
    for (int turn = 0; turn < TURNS; turn++) {
        fill(record, thread, turn);
        if (turn % 2) CHECK_EQ(MPI_File_write_shared(common, record, RECORD, MPI_BYTE, &status), MPI_SUCCESS);
        else CHECK_EQ(MPI_File_iwrite_shared(common, record, RECORD, MPI_BYTE, &request), MPI_SUCCESS);
        if (turn % 2 == 0) MPI_Wait(&request, &status);
    }
}

static void *run(void *argument) {
    task((int)(long)argument);
    return NULL;
}

static void by_threads(void (*what)(int)) {
    pthread_t threads[THREADS];
    task = what;
    for (long thread = 0; thread < THREADS; thread++)
        CHECK_EQ(pthread_create(&threads[thread], NULL, run, (void *)thread), 0);
    for (int thread = 0; thread < THREADS; thread++) pthread_join(threads[thread], NULL);
}

/* Each record of `ranks` ranks is there once. */
static void check_records(int ranks, int first) {
    long records = (long)ranks * THREADS * TURNS;
    unsigned char *all = calloc(records, RECORD), *seen = calloc(records, 1);
    MPI_Status status;
    int found = -1;
    CHECK_EQ(MPI_File_read_at(common, 0, all, (int)records * RECORD, MPI_BYTE, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_BYTE, &found);
    CHECK_EQ(found, records * RECORD);
    for (long at = 0; at < records; at++) {
        unsigned char *record = all + at * RECORD;
        int who = record[0] - 1, thread = record[1], turn = record[2], index = who - first;
        CHECK(index >= 0 && index < ranks && thread < THREADS && turn < TURNS);
        CHECK_EQ(seen[(index * THREADS + thread) * TURNS + turn]++, 0);
        for (int byte = 3; byte < RECORD; byte++)
            CHECK_EQ(record[byte], (unsigned char)(7 * who + 5 * thread + turn));
    }
    free(all);
    free(seen);
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) snprintf(name, sizeof name, "/dev/shm/files-threads-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int thread = 0; thread < THREADS; thread++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[thread]);
    by_threads(own_files);
    common = opened(MPI_COMM_SELF, 100 + rank, MPI_MODE_DELETE_ON_CLOSE);
    by_threads(individual);
    check_records(1, rank);
    CHECK_EQ(MPI_File_close(&common), MPI_SUCCESS);
    common = opened(MPI_COMM_WORLD, 99, MPI_MODE_DELETE_ON_CLOSE);
    by_threads(shared);
    MPI_File_sync(common);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(common);
    check_records(size, 0);
    CHECK_EQ(MPI_File_close(&common), MPI_SUCCESS);
    for (int thread = 0; thread < THREADS; thread++) MPI_Comm_free(&comms[thread]);
    return finish();
}
