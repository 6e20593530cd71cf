// Operations that outlive their communicator: the program frees it while they are under way, and its error handler
// hears of their failures all the same, also when other communicators were made since.
//# ranks: 2
//# abi: mpich, mpi5, openmpi
//# progress: all
#include "check.h"
static int heard, heard_class;

static void listen(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    heard++;
    heard_class = class_of(*code);
}

/* Posts a receive for one int, frees the communicator, and gets two. Other communicators come and go meanwhile. */
static int truncated(MPI_Errhandler handler, int persistent) {
    int in[2] = {-1, -1}, out[2] = {1, 2}, code = MPI_SUCCESS;
    MPI_Comm comm, others[3];
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, handler);
    if (rank == 1) {
        if (persistent)
            MPI_Recv_init(in, 1, MPI_INT, 0, 0, comm, &request);
        else
            MPI_Irecv(in, 1, MPI_INT, 0, 0, comm, &request);
        MPI_Comm_free(&comm);
        if (persistent) MPI_Start(&request);
    }
    for (int i = 0; i < 3; i++) MPI_Comm_dup(MPI_COMM_WORLD, &others[i]);
    if (rank == 0) {
        MPI_Send(out, 2, MPI_INT, 1, 0, comm);
        MPI_Comm_free(&comm);
    }
    MPI_Comm_free(&others[0]);
    code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&others[1]);
    MPI_Comm_free(&others[2]);
    if (persistent && rank == 1) MPI_Request_free(&request);
    return class_of(code);
}

/* The same by a matched probe: the communicator is freed before the message is received. */
static int matched(MPI_Errhandler handler, int later) {
    int in[2] = {-1, -1}, out[2] = {1, 2}, code = MPI_SUCCESS;
    MPI_Comm comm, others[3];
    MPI_Message message;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, handler);
    if (rank == 0) MPI_Send(out, 2, MPI_INT, 1, 0, comm);
    if (rank == 1) MPI_Mprobe(0, 0, comm, &message, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    for (int i = 0; i < 3; i++) MPI_Comm_dup(MPI_COMM_WORLD, &others[i]);
    MPI_Comm_free(&others[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &others[0]);
    if (rank == 1 && later) {
        MPI_Imrecv(in, 1, MPI_INT, &message, &request);
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        code = MPI_Mrecv(in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 3; i++) MPI_Comm_free(&others[i]);
    return class_of(code);
}

int main(int argc, char **argv) {
    MPI_Errhandler own;
    start(&argc, &argv);
    MPI_Comm_create_errhandler(listen, &own);
    for (int round = 0; round < 4; round++) {
        int expected = rank == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
        CHECK_EQ(truncated(MPI_ERRORS_RETURN, round % 2), expected);
        CHECK_EQ(truncated(own, round % 2), expected);
        CHECK_EQ(heard, rank * (round + 1));
        CHECK_EQ(heard_class, expected);
    }
    heard = heard_class = 0;
    for (int later = 0; later < 2; later++) {
        int expected = rank == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
        CHECK_EQ(matched(MPI_ERRORS_RETURN, later), expected);
        CHECK_EQ(matched(own, later), expected);
        CHECK_EQ(heard, rank * (later + 1));
        CHECK_EQ(heard_class, expected);
    }
    MPI_Errhandler_free(&own);
    return finish();
}
