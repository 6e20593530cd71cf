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

/* MPI_Waitall says which request failed. */
static void truncate_one_of_two(void) {
    int out[8] = {0}, in[8];
    if (rank == 0) {
        MPI_Send(out, 2, MPI_INT, 1, 2, MPI_COMM_WORLD);
        MPI_Send(out, 8, MPI_INT, 1, 3, MPI_COMM_WORLD);
        return;
    }
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Irecv(in, 4, MPI_INT, 0, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in + 4, 4, MPI_INT, 0, 3, MPI_COMM_WORLD, &requests[1]);
    CHECK_EQ(class_of(MPI_Waitall(2, requests, statuses)), MPI_ERR_IN_STATUS);
    CHECK_EQ(statuses[0].MPI_ERROR, MPI_SUCCESS);
    CHECK_EQ(class_of(statuses[1].MPI_ERROR), MPI_ERR_TRUNCATE);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    truncate_at(9);
    truncate_at(5000);
    truncate_at(1 << 20);
    truncate_one_of_two();
    int value = rank;
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK_EQ(value, 0);
    return finish();
}
