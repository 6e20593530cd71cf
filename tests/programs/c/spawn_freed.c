// What is under way on a communicator goes on when MPI_Comm_free frees it: a process that ends then stays until others
// have taken what it has sent them. It is over when MPI_Comm_disconnect returns (MPI-5.0 7.4.3, 11.10.4).
//# ranks: 1 2
//# abi: mpi5, mpich
//# progress: steal, none, thread
//# nodes: no
#include "check.h"
#include <unistd.h>

enum { LONG = 1 << 20, SENDS = 3, CHILDREN = 2 };

/* Those of a child go with it. */
static char bytes[CHILDREN][SENDS][LONG];

static void send_all(MPI_Comm parent, int parents) {
    for (int at = 0; at < SENDS; at++) {
        MPI_Request request;
        memset(bytes[0][at], 5 + at, LONG);
        MPI_Isend(bytes[0][at], LONG, MPI_BYTE, at % parents, at, parent, &request);
        MPI_Request_free(&request);
    }
}

static void receive_all(MPI_Comm children, int disconnects) {
    MPI_Request requests[CHILDREN * SENDS];
    int count = 0;
    memset(bytes, 0, sizeof bytes);
    for (int child = 0; child < CHILDREN; child++) {
        for (int at = rank; at < SENDS; at += size) {
            MPI_Irecv(bytes[child][at], LONG, MPI_BYTE, child, at, children, &requests[count++]);
        }
    }
    if (disconnects) MPI_Comm_disconnect(&children);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int child = 0; child < CHILDREN; child++) {
        for (int at = rank; at < SENDS; at += size) {
            CHECK(bytes[child][at][0] == 5 + at && bytes[child][at][LONG - 1] == 5 + at);
        }
    }
    if (!disconnects) MPI_Comm_free(&children);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm other;
    MPI_Comm_get_parent(&other);
    if (other != MPI_COMM_NULL) {
        int parents;
        MPI_Comm_remote_size(other, &parents);
        send_all(other, parents);
        if (strcmp(argv[1], "free") == 0) {
            MPI_Comm_free(&other);
        } else {
            MPI_Comm_disconnect(&other);
            memset(bytes, 0, sizeof bytes);
        }
        CHECK(other == MPI_COMM_NULL);
        return finish();
    }
    char *ways[2] = {"free", "disconnect"};
    for (int way = 0; way < 2; way++) {
        char *arguments[] = {ways[way], NULL};
        MPI_Comm_spawn(argv[0], arguments, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
        usleep(300000);
        receive_all(other, way == 1);
    }
    return finish();
}
