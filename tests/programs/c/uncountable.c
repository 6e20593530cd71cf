// More bytes than 64 bits count are refused; their number, cut off, would be that of some few.
//# ranks: 1 2
#include "check.h"
static const MPI_Count many = ((MPI_Count)1 << 62) + 1;

#define REFUSED(call) CHECK_EQ(class_of(call), MPI_ERR_COUNT)

static void messages(int *data, MPI_Datatype huge) {
    MPI_Request request;
    REFUSED(MPI_Send_c(data, many, MPI_INT, 0, 0, MPI_COMM_WORLD));
    REFUSED(MPI_Isend_c(data, many, MPI_INT, 0, 0, MPI_COMM_WORLD, &request));
    REFUSED(MPI_Recv_c(data, many, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    REFUSED(MPI_Send_init_c(data, many, MPI_INT, 0, 0, MPI_COMM_WORLD, &request));
    REFUSED(MPI_Send(data, 1 << 30, huge, 0, 0, MPI_COMM_WORLD));
    REFUSED(MPI_Irecv(data, 1 << 30, huge, 0, 0, MPI_COMM_WORLD, &request));
}

static void collectives(int *data, MPI_Datatype huge) {
    MPI_Request request;
    MPI_Count counts[2] = {1, many};
    MPI_Aint places[2] = {0, 0};
    REFUSED(MPI_Bcast_c(data, many, MPI_INT, 0, MPI_COMM_WORLD));
    REFUSED(MPI_Ibcast_c(data, many, MPI_INT, 0, MPI_COMM_WORLD, &request));
    REFUSED(MPI_Bcast(data, 1 << 30, huge, 0, MPI_COMM_WORLD));
    REFUSED(MPI_Allreduce_c(MPI_IN_PLACE, data, many, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    REFUSED(MPI_Iallreduce_c(MPI_IN_PLACE, data, many, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
    REFUSED(MPI_Allgather_c(MPI_IN_PLACE, 0, MPI_INT, data, many, MPI_INT, MPI_COMM_WORLD));
    REFUSED(MPI_Alltoall_c(MPI_IN_PLACE, 0, MPI_INT, data, many, MPI_INT, MPI_COMM_WORLD));
    counts[0] = size == 1 ? many : 1;
    REFUSED(MPI_Allgatherv_c(MPI_IN_PLACE, 0, MPI_INT, data, counts, places, MPI_INT, MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
    int data[4] = {1, 2, 3, 4};
    MPI_Datatype part, huge;
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Type_contiguous(1 << 20, MPI_INT, &part);
    MPI_Type_contiguous(1 << 20, part, &huge);
    MPI_Type_commit(&huge);
    messages(data, huge);
    collectives(data, huge);
    // Nothing has begun, and others still work.
    int sum = 0;
    CHECK_EQ(MPI_Allreduce(data, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
    CHECK_EQ(sum, size);
    MPI_Type_free(&part);
    MPI_Type_free(&huge);
    MPI_Finalize();
    return 0;
}
