/* `attached FILE`: until FILE is there, rank 0 computes and rank 1 waits for it, each in a function whose name tools
 * show. */
#include <mpi.h>
#include <unistd.h>

__attribute__((noinline)) static void computes_here(const char *end) {
    for (volatile long step = 0; step % 100000 || access(end, F_OK); step++)
        ;
}

__attribute__((noinline)) static void waits_here(void) {
    int data;
    MPI_Recv(&data, 1, MPI_INT, 0, 42, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    int rank, data = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        computes_here(argv[1]);
        MPI_Send(&data, 1, MPI_INT, 1, 42, MPI_COMM_WORLD);
    } else {
        waits_here();
    }
    MPI_Finalize();
    return 0;
}
