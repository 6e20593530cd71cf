// A program that does not know of any profiling tool: every process sends rank + 3 messages to the next
// one, and two more that it asks tools not to count.
#include "../c/check.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    int next = (rank + 1) % size, last = (rank + size - 1) % size, got;
    for (int i = 0; i < rank + 3; i++) MPI_Send(&i, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
    for (int i = 0; i < last + 3; i++)
        MPI_Recv(&got, 1, MPI_INT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQ(got, last + 2);
    MPI_Pcontrol(0);
    for (int i = 0; i < 2; i++)
        MPI_Sendrecv_replace(&got, 1, MPI_INT, next, 1, last, 1, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
    MPI_Send(&got, 1, MPI_INT, next, 2, MPI_COMM_WORLD);
    MPI_Recv(&got, 1, MPI_INT, last, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Pcontrol(1);
    return finish();
}
