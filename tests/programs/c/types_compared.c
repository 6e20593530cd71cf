// A receive of other types than its message fails with MPI_ERR_TYPE, whatever its length and mode; types that have the
// same elements in the same order match, however they are made.
//# ranks: 2
//# progress: steal, none
//# settings: COHORT_CHECK=members
//# nodes: no
// Messages between nodes carry no types.
#include "check.h"
#include <stddef.h>

enum { MOST = 1 << 20 };
static char *out, *in;
static int kinds;

/* One message of each form; the class that the receive gives. */
static int message(int form, int count, MPI_Datatype sent, int room, MPI_Datatype received) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    MPI_Message found;
    int tag = ++kinds, code = MPI_SUCCESS, token = 0;
    if (rank == 0) {
        if (form == 2) MPI_Recv(&token, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (form == 3) MPI_Ssend(out, count, sent, 1, tag, MPI_COMM_WORLD);
        else if (form == 4) {
            MPI_Isend(out, count, sent, 1, tag, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else MPI_Send(out, count, sent, 1, tag, MPI_COMM_WORLD);
        return MPI_SUCCESS;
    }
    switch (form) {
    case 1: /* Stored before its receive is there. */
        MPI_Mprobe(0, tag, MPI_COMM_WORLD, &found, &status);
        code = MPI_Mrecv(in, room, received, &found, &status);
        break;
    case 2: /* Posted before. */
        MPI_Irecv(in, room, received, 0, tag, MPI_COMM_WORLD, &request);
        MPI_Send(&token, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
        code = MPI_Wait(&request, &status);
        break;
    default: code = MPI_Recv(in, room, received, 0, tag, MPI_COMM_WORLD, &status);
    }
    CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == tag);
    return class_of(code);
}

static void expect(int class, int count, MPI_Datatype sent, int room, MPI_Datatype received) {
    for (int form = 0; form < 5; form++) {
        int code = message(form, count, sent, room, received);
        if (rank == 1) CHECK_EQ(code, class);
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    out = calloc(MOST, 1), in = calloc(MOST, 1);
    struct both { int i; double d; };
    MPI_Datatype both, many, spread, types[2] = {MPI_INT, MPI_DOUBLE};
    MPI_Aint places[2] = {offsetof(struct both, i), offsetof(struct both, d)};
    MPI_Type_create_struct(2, (int[]){1, 1}, places, types, &both);
    MPI_Type_contiguous(3, both, &many);
    MPI_Type_vector(4, 1, 2, MPI_INT, &spread);
    MPI_Type_commit(&both), MPI_Type_commit(&many), MPI_Type_commit(&spread);
    int counts[] = {1, 100, 3000, 20000, 100000};
    for (int i = 0; i < 5; i++) {
        int n = counts[i];
        expect(MPI_SUCCESS, n, MPI_INT, n, MPI_INT);
        expect(MPI_SUCCESS, n, MPI_INT, n + 5, MPI_INT);
        expect(MPI_ERR_TYPE, n, MPI_INT, n, MPI_FLOAT);
        expect(MPI_ERR_TYPE, n, MPI_INT, 4 * n, MPI_BYTE);
        expect(MPI_SUCCESS, n, MPI_INT, n / 4 + 1, spread);
        expect(MPI_ERR_TRUNCATE, n, MPI_INT, n - 1, MPI_INT);
    }
    expect(MPI_SUCCESS, 3, both, 1, many);
    expect(MPI_SUCCESS, 4, both, 2, many);
    expect(MPI_SUCCESS, 2, many, 6, both);
    expect(MPI_SUCCESS, 1, MPI_INT, 1, many);
    expect(MPI_ERR_TYPE, 2, MPI_INT, 1, many);
    expect(MPI_ERR_TYPE, 1, MPI_DOUBLE, 1, both);
    expect(MPI_SUCCESS, 12, MPI_PACKED, 3, MPI_INT);
    expect(MPI_SUCCESS, 3, MPI_INT, 12, MPI_PACKED);
    expect(MPI_SUCCESS, 0, MPI_INT, 1, MPI_FLOAT);
    MPI_Type_free(&both), MPI_Type_free(&many), MPI_Type_free(&spread);
    int token = rank, theirs = -1;
    MPI_Sendrecv(&token, 1, MPI_INT, 1 - rank, 0, &theirs, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(theirs, 1 - rank);
    free(out), free(in);
    return finish();
}
