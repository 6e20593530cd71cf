// Waitany, Waitsome, Testany, Testsome, Testall and Request_get_status on a mix of requests.
//# ranks: 2
//# progress: all
#include "check.h"
enum { N = 12 };

static void receive_one_by_one(MPI_Request *requests, const int *in) {
    int seen = 0, index, flag, count, indices[N];
    MPI_Status status, statuses[N];
    MPI_Waitany(N, requests, &index, &status);
    CHECK_EQ(in[index], index * 11);
    CHECK_EQ(status.MPI_TAG, index);
    seen |= 1 << index;
    for (flag = 0; !flag;) MPI_Testany(N, requests, &index, &flag, &status);
    CHECK_EQ(in[index], index * 11);
    seen |= 1 << index;
    while (seen != (1 << N) - 1) {
        for (int i = 0; i < N; i++) statuses[i].MPI_ERROR = -7;
        if (seen & 1) MPI_Waitsome(N, requests, &count, indices, statuses);
        else MPI_Testsome(N, requests, &count, indices, statuses);
        for (int i = 0; i < count; i++) {
            CHECK(!(seen & 1 << indices[i]));
            CHECK_EQ(in[indices[i]], indices[i] * 11);
            CHECK_EQ(statuses[i].MPI_TAG, indices[i]);
            CHECK_EQ(statuses[i].MPI_ERROR, -7);
            seen |= 1 << indices[i];
        }
    }
    MPI_Waitany(N, requests, &index, &status);
    CHECK_EQ(index, MPI_UNDEFINED);
    MPI_Waitsome(N, requests, &count, indices, statuses);
    CHECK_EQ(count, MPI_UNDEFINED);
    MPI_Testall(N, requests, &flag, statuses);
    CHECK(flag);
}

int main(int argc, char **argv) {
    int in[N], out[N], flag = 0;
    MPI_Request requests[N];
    start(&argc, &argv);
    for (int i = 0; i < N; i++) {
        out[i] = i * 11;
        in[i] = -1;
        if (rank == 1) MPI_Irecv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]);
    }
    if (rank == 0)
        for (int i = N - 1; i >= 0; i--) MPI_Send(&out[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD);
    else receive_one_by_one(requests, in);

    if (rank == 0) MPI_Send(out, 1, MPI_INT, 1, 50, MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Irecv(in, 1, MPI_INT, 0, 50, MPI_COMM_WORLD, &requests[0]);
        while (!flag) MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE);
        CHECK(requests[0] != MPI_REQUEST_NULL);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    return finish();
}
