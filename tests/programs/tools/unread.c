/* Rank 0 sends rank 1, which computes, more than sockets hold, and then ends the job: by `MPI_Abort`, or with an
 * argument by a crash. */
#include <mpi.h>
#include <stdlib.h>
enum { LENGTH = 60 << 10, MESSAGES = 256 };
static char data[MESSAGES][LENGTH];
static MPI_Request requests[MESSAGES];

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        for (int message = 0; message < MESSAGES; message++)
            MPI_Isend(data[message], LENGTH, MPI_CHAR, 1, message, MPI_COMM_WORLD,
                      &requests[message]);
        if (argc > 1) abort();
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    for (double end = MPI_Wtime() + 100; MPI_Wtime() < end;)
        for (volatile int step = 0; step < 100000; step++)
            ;
    MPI_Finalize();
    return 0;
}
