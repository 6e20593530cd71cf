// A token passes around the ring and every rank adds its number.
//# ranks: 1 2 3 8
//# abi: mpich, mpi5, mpi5-wheel, openmpi
//# progress: steal, none, thread
//# wait: auto, park
//# differential: mpich
#include "check.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    int token = 0, left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Status status;
    if (rank == 0) {
        MPI_Request request;
        MPI_Isend(&token, 1, MPI_INT, right, 7, MPI_COMM_WORLD, &request);
        int back;
        MPI_Recv(&back, 1, MPI_INT, left, 7, MPI_COMM_WORLD, &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK_EQ(back, size * (size - 1) / 2);
        printf("the token counts %d\n", back);
    } else {
        MPI_Recv(&token, 1, MPI_INT, left, 7, MPI_COMM_WORLD, &status);
        token += rank;
        MPI_Send(&token, 1, MPI_INT, right, 7, MPI_COMM_WORLD);
    }
    int count;
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQ(count, 1);
    CHECK_EQ(status.MPI_SOURCE, left);
    CHECK_EQ(status.MPI_TAG, 7);
    return finish();
}
