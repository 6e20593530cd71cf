/* A world that is spawned, and parts from its parents, ends while one of its ranks is in MPI_Comm_connect, for whose
   port the launcher still looks; the parents go on until that is over: `cut_short PORT`. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    MPI_Comm parents, children, other;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parents);
    if (parents == MPI_COMM_NULL) {
        MPI_Comm_spawn(argv[0], argv + 1, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE);
        MPI_Comm_disconnect(&children);
        sleep(4);
        printf("passed\n");
    } else {
        MPI_Comm_disconnect(&parents);
        if (rank == 0) MPI_Comm_connect(argv[1], MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
        usleep(500000);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Finalize();
    return 0;
}
