// Very many nonblocking collectives under way, of several communicators in turn: each has its own result. The times
// that it prints show whether each costs about what it costs among few. Walks over all of them pass the time limit.
//# ranks: 2
//# abi: mpi5
//# timeout: 60
#include "check.h"
enum { FEW = 1000, MANY = 40000, COMMS = 3 };

static MPI_Comm comms[COMMS];

// Seconds for each of so many.
static double run(int count) {
    MPI_Request *requests = malloc((size_t)count * sizeof *requests);
    int *in = malloc((size_t)count * sizeof *in), *out = malloc((size_t)count * sizeof *out);
    double begin = MPI_Wtime();
    for (int i = 0; i < count; i++) {
        MPI_Comm comm = comms[i % COMMS];
        in[i] = i + rank;
        out[i] = i % size == rank ? i : -1;
        switch (i % 4) {
        case 0: MPI_Ibarrier(comm, &requests[i]); break;
        case 1: MPI_Ibcast(&out[i], 1, MPI_INT, i % size, comm, &requests[i]); break;
        default: MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, comm, &requests[i]);
        }
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    double time = (MPI_Wtime() - begin) / count;
    for (int i = 0; i < count; i++) {
        if (i % 4 == 1) CHECK_EQ(out[i], i);
        if (i % 4 > 1) CHECK_EQ(out[i], size * i + size * (size - 1) / 2);
    }
    free(requests), free(in), free(out);
    return time;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    for (int i = 0; i < COMMS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    run(FEW);
    double few = run(FEW), many = run(MANY);
    if (rank == 0) printf("%.2f us each among few, %.2f among many\n", few * 1e6, many * 1e6);
    for (int i = 0; i < COMMS; i++) MPI_Comm_free(&comms[i]);
    return finish();
}
