/* `watched FILE`: until FILE is there, rank 0 computes, rank 1 waits for rank 0, and ranks 2 and 3 play ping-pong with
 * 1000 bytes. Prints a line when all have begun. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
enum { LENGTH = 1000 };

int main(int argc, char **argv) {
    int rank;
    char data[LENGTH] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        for (volatile long step = 0; step % 100000 || access(argv[1], F_OK); step++)
            ;
        MPI_Send(data, LENGTH, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Recv(data, LENGTH, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int more = 1; rank >= 2 && more;) {
        int other = 5 - rank;
        if (rank == 2) {
            usleep(1000);
            data[0] = more = access(argv[1], F_OK) != 0;
            MPI_Send(data, LENGTH, MPI_CHAR, other, 0, MPI_COMM_WORLD);
            MPI_Recv(data, LENGTH, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(data, LENGTH, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            more = data[0];
            MPI_Send(data, LENGTH, MPI_CHAR, other, 0, MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
    return 0;
}
