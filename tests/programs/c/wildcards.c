// MPI_ANY_SOURCE and MPI_ANY_TAG take every message once, each source's in order; an older
// wildcard receive comes before a younger exact one.
//# ranks: 2 4 8
//# progress: all
#include "check.h"
enum { MESSAGES = 200 };

static void take_all(void) {
    int *next = calloc(size, sizeof *next);
    for (int i = 0; i < MESSAGES * (size - 1); i++) {
        int data[2];
        MPI_Status status;
        MPI_Recv(data, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        CHECK_EQ(data[0], status.MPI_SOURCE);
        CHECK_EQ(data[1], next[status.MPI_SOURCE]);
        CHECK_EQ(status.MPI_TAG, 100 + data[1] % 5);
        next[status.MPI_SOURCE]++;
    }
    for (int source = 1; source < size; source++) CHECK_EQ(next[source], MESSAGES);
    free(next);
}

static void older_wildcard_first(void) {
    if (rank == 0) {
        int any = -1, exact = -1;
        MPI_Request requests[2];
        MPI_Irecv(&any, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&exact, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, &requests[1]);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK_EQ(any, 1);
        CHECK_EQ(exact, 2);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 1; rank == 1 && i <= 2; i++)
            MPI_Send(&i, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (rank == 0) {
        take_all();
    } else {
        for (int i = 0; i < MESSAGES; i++) {
            int data[2] = {rank, i};
            MPI_Send(data, 2, MPI_INT, 0, 100 + i % 5, MPI_COMM_WORLD);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    older_wildcard_first();
    return finish();
}
