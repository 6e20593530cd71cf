// Very many messages that are sent before their receiver takes any of them: all arrive. The times that it prints show
// whether each costs about what it costs among few; walks over all of them for each take 15 times as long.
//# ranks: 2
//# timeout: 150
#include "check.h"
enum { FEW = 40000, MANY = 120000 };

// Seconds for each of so many messages there and back.
static double exchange(int count) {
    MPI_Request *requests = malloc(2 * (size_t)count * sizeof *requests);
    int *out = malloc(count * sizeof *out), *in = malloc(count * sizeof *in);
    int peer = 1 - rank;
    double begin = MPI_Wtime();
    for (int i = 0; i < count; i++) MPI_Irecv(&in[i], 1, MPI_INT, peer, i % FEW, MPI_COMM_WORLD, &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        out[i] = i + rank;
        MPI_Isend(&out[i], 1, MPI_INT, peer, i % FEW, MPI_COMM_WORLD, &requests[count + i]);
    }
    MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE);
    double time = (MPI_Wtime() - begin) / count;
    for (int i = 0; i < count; i++) CHECK_EQ(in[i], i + peer);
    free(requests), free(out), free(in);
    return time;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    exchange(FEW);
    double few = exchange(FEW), many = exchange(MANY);
    if (rank == 0) printf("%.2f us each among few, %.2f among many\n", few * 1e6, many * 1e6);
    return finish();
}
