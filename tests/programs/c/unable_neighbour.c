// A rank that may not take descriptors of others, as in some sandboxes, sleeps first, and so watches the network for
// its node. What comes for its neighbour then does come, and all end.
//# ranks: 3
//# abi: mpi5
//# timeout: 60
#include "check.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
enum { OWNER, UNABLE, SENDER, ROUNDS = 5, MOMENT = 20000 };

static void forbid(void) {
    struct sock_filter filter[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_pidfd_getfd},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

int main(int argc, char **argv) {
    int word = 0;
    const char *number = getenv("OMPI_COMM_WORLD_RANK");
    if (number && atoi(number) == UNABLE) forbid();
    start(&argc, &argv);
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == UNABLE) {
            MPI_Recv(&word, 1, MPI_INT, OWNER, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK_EQ(word, round);
        } else if (rank == OWNER) {
            // The neighbour sleeps when this rank does.
            usleep(MOMENT);
            MPI_Recv(&word, 1, MPI_INT, SENDER, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK_EQ(word, round);
            MPI_Send(&word, 1, MPI_INT, UNABLE, 1, MPI_COMM_WORLD);
            MPI_Send(&word, 1, MPI_INT, SENDER, 2, MPI_COMM_WORLD);
        } else {
            usleep(3 * MOMENT);
            MPI_Send(&round, 1, MPI_INT, OWNER, 0, MPI_COMM_WORLD);
            MPI_Recv(&word, 1, MPI_INT, OWNER, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    return finish();
}
