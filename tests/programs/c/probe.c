// Probe, Iprobe, Mprobe, Improbe, Mrecv and Imrecv report and take the right message.
//# ranks: 2 4
//# progress: all
#include "check.h"
#include <unistd.h>
enum { SIZES = 4, PASSES = 5 };
static const int lengths[SIZES] = {0, 10, 5000, 300000};
static char data[300000], in[300000];

static void receive_probed(int length) {
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    int count, flag = 0;
    MPI_Probe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_CHAR, &count);
    CHECK_EQ(count, length);
    MPI_Recv(in, count, MPI_CHAR, status.MPI_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(memcmp(in, data, count) == 0);

    while (!flag) MPI_Iprobe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
    CHECK_EQ(status.MPI_TAG, 2);
    MPI_Mprobe(0, 2, MPI_COMM_WORLD, &message, &status);
    /* The message is out of reach of other receives now. */
    MPI_Iprobe(0, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    memset(in, 1, sizeof in);
    MPI_Mrecv(in, length, MPI_CHAR, &message, &status);
    CHECK(message == MPI_MESSAGE_NULL);
    CHECK(memcmp(in, data, length) == 0);

    for (flag = 0; !flag;) MPI_Improbe(0, 3, MPI_COMM_WORLD, &flag, &message, &status);
    memset(in, 1, sizeof in);
    MPI_Imrecv(in, length, MPI_CHAR, &message, &request);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_CHAR, &count);
    CHECK_EQ(count, length);
    CHECK(memcmp(in, data, length) == 0);
}

/* A message goes from rank to rank. All sleep in their probe by the time that it comes, the last one first. */
static void pass_on(int pass) {
    int value = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(rank == 0 ? 30000 : 2000u * (unsigned)(size - rank));
    if (rank > 0) {
        MPI_Probe(rank - 1, pass, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&value, 1, MPI_INT, rank - 1, pass, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    CHECK_EQ(value, rank);
    value++;
    if (rank < size - 1) MPI_Ssend(&value, 1, MPI_INT, rank + 1, pass, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    for (size_t i = 0; i < sizeof data; i++) data[i] = (char)(i * 31);
    for (int i = 0; i < SIZES; i++) {
        for (int to = 1; rank == 0 && to < size; to++) {
            MPI_Request requests[3];
            for (int tag = 1; tag <= 3; tag++)
                MPI_Isend(data, lengths[i], MPI_CHAR, to, tag, MPI_COMM_WORLD, &requests[tag - 1]);
            MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        }
        if (rank != 0) receive_probed(lengths[i]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int pass = 0; pass < PASSES; pass++) pass_on(pass);
    MPI_Status status;
    MPI_Probe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    CHECK_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
    return finish();
}
