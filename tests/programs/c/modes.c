// Standard, synchronous, ready and buffered sends, blocking and not, and persistent ones.
//# ranks: 2
//# progress: steal, none
#include "check.h"
enum { COUNT = 3000 };
static int out[COUNT], in[COUNT];

static void expect(int tag) {
    memset(in, 0, sizeof in);
    MPI_Recv(in, COUNT, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < COUNT; i++) CHECK_EQ(in[i], i * 3);
}

static void buffered(void) {
    if (rank == 0) {
        int bytes;
        MPI_Pack_size(COUNT, MPI_INT, MPI_COMM_WORLD, &bytes);
        bytes = 2 * (bytes + MPI_BSEND_OVERHEAD);
        void *space = malloc(bytes), *back;
        MPI_Request request;
        MPI_Buffer_attach(space, bytes);
        MPI_Bsend(out, COUNT, MPI_INT, 1, 10, MPI_COMM_WORLD);
        MPI_Ibsend(out, COUNT, MPI_INT, 1, 11, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        memset(out, 0, sizeof out);
        MPI_Barrier(MPI_COMM_WORLD);
        int size_back;
        MPI_Buffer_detach(&back, &size_back);
        CHECK(back == space);
        CHECK_EQ(size_back, bytes);
        free(space);
        for (int i = 0; i < COUNT; i++) out[i] = i * 3;
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        expect(10);
        expect(11);
    }
}

/* A synchronous send does not complete before its receive was posted. */
static void synchronous(void) {
    if (rank == 0) {
        MPI_Request request;
        int done;
        MPI_Issend(out, 1, MPI_INT, 1, 20, MPI_COMM_WORLD, &request);
        for (int i = 0; i < 1000; i++) {
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            CHECK(!done);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Ssend(out, COUNT, MPI_INT, 1, 21, MPI_COMM_WORLD);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Recv(in, 1, MPI_INT, 0, 20, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(21);
    }
}

static void ready(void) {
    if (rank == 1) {
        MPI_Request requests[2];
        static int first[COUNT], second[COUNT];
        MPI_Irecv(first, COUNT, MPI_INT, 0, 30, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(second, COUNT, MPI_INT, 0, 31, MPI_COMM_WORLD, &requests[1]);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < COUNT; i++) CHECK(first[i] == i * 3 && second[i] == i * 3);
    } else {
        MPI_Request request;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Rsend(out, COUNT, MPI_INT, 1, 30, MPI_COMM_WORLD);
        MPI_Irsend(out, COUNT, MPI_INT, 1, 31, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    for (int i = 0; i < COUNT; i++) out[i] = i * 3;
    buffered();
    MPI_Barrier(MPI_COMM_WORLD);
    synchronous();
    MPI_Barrier(MPI_COMM_WORLD);
    ready();
    return finish();
}
