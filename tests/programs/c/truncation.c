// A message longer than its receive gives MPI_ERR_TRUNCATE, writes nothing beyond the
// buffer, and the communicator works on.
//# ranks: 2
#include "check.h"

static void truncate_at(int sent) {
    if (rank == 0) {
        int *out = calloc(sent, sizeof *out);
        MPI_Send(out, sent, MPI_INT, 1, 1, MPI_COMM_WORLD);
        free(out);
        return;
    }
    int in[12];
    memset(in, 0x55, sizeof in);
    int code = MPI_Recv(in, 8, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(class_of(code), MPI_ERR_TRUNCATE);
    for (int i = 8; i < 12; i++) CHECK_EQ(in[i], 0x55555555);
}

/* MPI_Waitall and MPI_Waitsome say which request failed, be it the first or the last. */
static void truncate_one_of_two(int some, int longer) {
    int out[8] = {0}, in[8], count = 2, indices[2];
    if (rank == 0) {
        for (int i = 0; i < 2; i++) MPI_Send(out, i == longer ? 8 : 2, MPI_INT, 1, i, MPI_COMM_WORLD);
        MPI_Send(NULL, 0, MPI_INT, 1, 2, MPI_COMM_WORLD);
        return;
    }
    MPI_Request requests[2];
    MPI_Status statuses[2];
    for (int i = 0; i < 2; i++) MPI_Irecv(in + 4 * i, 4, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]);
    // Both are there then.
    MPI_Recv(NULL, 0, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int code = some ? MPI_Waitsome(2, requests, &count, indices, statuses) : MPI_Waitall(2, requests, statuses);
    CHECK_EQ(class_of(code), MPI_ERR_IN_STATUS);
    CHECK_EQ(count, 2);
    CHECK_EQ(statuses[1 - longer].MPI_ERROR, MPI_SUCCESS);
    CHECK_EQ(class_of(statuses[longer].MPI_ERROR), MPI_ERR_TRUNCATE);
}

static int heard_class, heard_times;

static void hear(MPI_Comm *comm, int *code, ...) {
    CHECK(*comm == MPI_COMM_WORLD);
    heard_class = class_of(*code);
    heard_times++;
}

/* A handler of the program is told what has failed, and the caller, to look at the statuses (MPI 9.3.1). */
static void handlers_hear_what_failed(int call, int ignores) {
    int out[8] = {0}, in[8], count, flag = 0, indices[2];
    MPI_Request requests[2];
    MPI_Status all[2], *statuses = ignores ? MPI_STATUSES_IGNORE : all;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        for (int i = 0; i < 2; i++) MPI_Send(out, 8, MPI_INT, 1, i, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        return;
    }
    for (int i = 0; i < 2; i++) MPI_Irecv(in + 4 * i, 4, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    heard_class = heard_times = 0;
    int code = MPI_SUCCESS, left = 2;
    if (call == 0) code = MPI_Waitall(2, requests, statuses);
    while (call == 1 && code == MPI_SUCCESS && !flag) code = MPI_Testall(2, requests, &flag, statuses);
    if (call == 2) code = MPI_Waitsome(2, requests, &left, indices, statuses);
    while (call == 3 && code == MPI_SUCCESS) code = MPI_Testsome(2, requests, &left, indices, statuses);
    CHECK_EQ(class_of(code), MPI_ERR_IN_STATUS);
    CHECK_EQ(heard_class, MPI_ERR_TRUNCATE);
    CHECK_EQ(heard_times, 1);
    for (int i = left; i < 2; i++) MPI_Waitsome(2, requests, &count, indices, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    truncate_at(9);
    truncate_at(5000);
    truncate_at(1 << 20);
    for (int i = 0; i < 4; i++) truncate_one_of_two(i / 2, i % 2);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    for (int call = 0; call < 4; call++)
        for (int ignores = 0; ignores < 2; ignores++) handlers_hear_what_failed(call, ignores);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
    int value = rank;
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK_EQ(value, 0);
    return finish();
}
