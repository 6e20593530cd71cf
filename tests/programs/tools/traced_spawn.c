/* Worlds of two that are spawned one after the other, in the same places; each of their ranks has a message from, and
   one to, each rank that spawns. */
#include <mpi.h>
#include <string.h>

int main(int argc, char **argv) {
    MPI_Comm other;
    int rank, count, got;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&other);
    int turns = other == MPI_COMM_NULL ? 2 : 1;
    for (int turn = 0; turn < turns; turn++) {
        if (turns == 2) {
            MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
        }
        MPI_Comm_remote_size(other, &count);
        for (int peer = 0; peer < count; peer++) {
            MPI_Sendrecv(&rank, 1, MPI_INT, peer, 7, &got, 1, MPI_INT, peer, 7, other, MPI_STATUS_IGNORE);
        }
        MPI_Comm_disconnect(&other);
    }
    MPI_Finalize();
    return 0;
}
