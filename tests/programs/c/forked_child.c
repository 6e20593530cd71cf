// A child that is forked before MPI_Init, and ends by exit(), takes nothing of its parent's along: exit handlers that
// the MPI library has registered are the parent's.
//# ranks: 1 2 4
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

static void fork_and_exit(int status) {
    int ended = -1;
    pid_t child = fork();
    if (child == 0) exit(status);
    CHECK(child > 0 && waitpid(child, &ended, 0) == child);
    CHECK(WIFEXITED(ended));
    CHECK_EQ(WEXITSTATUS(ended), status);
}

int main(int argc, char **argv) {
    fork_and_exit(0);
    fork_and_exit(3);
    start(&argc, &argv);
    /* Whoever started the ranks sees that one is gone, if its child has not said farewell for it. */
    if (argc > 1 && rank == 1) _exit(0);
    int sum, one = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(sum, size);
    fork_and_exit(4);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(sum, size);
    return finish();
}
