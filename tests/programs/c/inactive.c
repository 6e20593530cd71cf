// What calls return of a request that is not active.
//# ranks: 1
//# abi: mpich, mpi5, openmpi
#include "check.h"

// MPI 4.1 3.7.3: what is returned of an inactive request is an empty status, whose error is MPI_SUCCESS.
static void is_empty(MPI_Status *status) {
    CHECK_EQ(status->MPI_SOURCE, MPI_ANY_SOURCE);
    CHECK_EQ(status->MPI_TAG, MPI_ANY_TAG);
    CHECK_EQ(status->MPI_ERROR, MPI_SUCCESS);
    memset(status, 0x5a, sizeof *status);
}

static void of_inactive(void) {
    MPI_Request request;
    MPI_Status status;
    int data, flag = 0;
    memset(&status, 0x5a, sizeof status);
    MPI_Recv_init(&data, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
    MPI_Wait(&request, &status);
    is_empty(&status);
    MPI_Test(&request, &flag, &status);
    CHECK(flag);
    is_empty(&status);
    flag = 0;
    MPI_Request_get_status(request, &flag, &status);
    CHECK(flag);
    is_empty(&status);
    MPI_Request_free(&request);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    of_inactive();
    return finish();
}
