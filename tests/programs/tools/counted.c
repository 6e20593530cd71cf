/* Rank 0 aborts the job with code 7 while the others do nothing but what is counted: calls on a communicator of
 * theirs. They are killed anywhere in it. */
#include <mpi.h>

int main(int argc, char **argv) {
    int rank, one = 1, sum, out, in;
    MPI_Comm own;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_SELF, &own);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0;; round++) {
        if (rank == 0 && round == 10000) MPI_Abort(MPI_COMM_WORLD, 7);
        MPI_Sendrecv(&one, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, own, MPI_STATUS_IGNORE);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, own);
        out = sum + in;
        if (out != 2) return 1;
    }
}
