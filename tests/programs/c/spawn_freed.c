// MPI_Comm_free leaves what is under way on the communicator to go on: a process that ends then stays until others
// have taken what it has sent them (MPI-5.0 7.4.3, 11.10.4).
//# ranks: 1 2
//# abi: mpi5, mpich
//# progress: steal, none, thread
//# nodes: no
#include "check.h"
#include <unistd.h>

enum { LONG = 1 << 20, SENDS = 3 };

/* Those of a child go with it. */
static char bytes[SENDS][LONG];

static void send_and_leave(MPI_Comm parent, int parents) {
    for (int at = 0; at < SENDS; at++) {
        MPI_Request request;
        memset(bytes[at], 5 + at, LONG);
        MPI_Isend(bytes[at], LONG, MPI_BYTE, at % parents, at, parent, &request);
        MPI_Request_free(&request);
    }
    MPI_Comm_free(&parent);
    CHECK(parent == MPI_COMM_NULL);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm other;
    MPI_Comm_get_parent(&other);
    if (other != MPI_COMM_NULL) {
        int parents;
        MPI_Comm_remote_size(other, &parents);
        send_and_leave(other, parents);
        return finish();
    }
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
    usleep(300000);
    for (int child = 0; child < 2; child++) {
        for (int at = rank; at < SENDS; at += size) {
            memset(bytes[at], 0, LONG);
            MPI_Recv(bytes[at], LONG, MPI_BYTE, child, at, other, MPI_STATUS_IGNORE);
            CHECK(bytes[at][0] == 5 + at && bytes[at][LONG - 1] == 5 + at);
        }
    }
    MPI_Comm_free(&other);
    return finish();
}
