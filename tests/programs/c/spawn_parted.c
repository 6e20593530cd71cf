// MPI_Finalize waits for processes that a process is connected with, also by way of others, and not for those that it
// has disconnected from (MPI-5.0 11.10.4).
//# ranks: 1 2
//# abi: mpi5, mpich
//# progress: steal, none, thread
//# nodes: no
// Between nodes all worlds of a node wait for each other.
#include "check.h"
#include <unistd.h>

enum { PATIENCE = 20000 };

enum { PARENTS_ENDED, SECOND_CAME, THIRD_CAME, MARKS };

/* Those of the parents' first rank: all ranks of a node have one address space. */
static volatile int marks[MARKS];

static MPI_Comm spawn(char *program, char *name) {
    char *arguments[] = {name, NULL};
    MPI_Comm inter;
    MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    volatile int *place = marks;
    if (rank == 0) MPI_Send(&place, sizeof place, MPI_BYTE, 0, 0, inter);
    return inter;
}

/* Ends when the parents have come out of MPI_Finalize. */
static int first(MPI_Comm parent, volatile int *ended) {
    MPI_Comm_disconnect(&parent);
    for (int waited = 0; !*ended; waited++) {
        if (waited == PATIENCE) {
            fputs("the parents wait for a world that they have disconnected from\n", stderr);
            return 1;
        }
        usleep(1000);
    }
    MPI_Finalize();
    return 0;
}

/* Ends late, and so does its child. */
static int late(volatile int *came) {
    usleep(50000);
    *came = 1;
    MPI_Finalize();
    return 0;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        MPI_Comm one = spawn(argv[0], "first");
        MPI_Comm two = spawn(argv[0], "second");
        MPI_Comm_disconnect(&one);
        CHECK(two != MPI_COMM_NULL);
        MPI_Finalize();
        int has_waited = marks[SECOND_CAME] && marks[THIRD_CAME];
        marks[PARENTS_ENDED] = 1;
        return rank == 0 && !has_waited;
    }
    volatile int *place;
    MPI_Recv(&place, sizeof place, MPI_BYTE, 0, 0, parent, MPI_STATUS_IGNORE);
    if (strcmp(argv[1], "first") == 0) return first(parent, &place[PARENTS_ENDED]);
    if (strcmp(argv[1], "third") == 0) return late(&place[THIRD_CAME]);
    char *arguments[] = {"third", NULL};
    MPI_Comm inter;
    MPI_Comm_spawn(argv[0], arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE);
    MPI_Send(&place, sizeof place, MPI_BYTE, 0, 0, inter);
    return late(&place[SECOND_CAME]);
}
