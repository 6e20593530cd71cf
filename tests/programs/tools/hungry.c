// Rank 1 takes 1 GiB of memory, bit by bit, while the others wait for it.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 4 << 20, PIECES = 256 };

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; rank == 1 && i < PIECES; i++) {
        char *piece = malloc(PIECE);
        if (!piece) MPI_Abort(MPI_COMM_WORLD, 3);
        memset(piece, i, PIECE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Finalize();
}
