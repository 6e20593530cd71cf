/* Each rank has a break of its own, which grows, shrinks, and comes back with zeros. */
//# ranks: 2 4
//# abi: mpich mpi5 openmpi
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1L << 20)

int main(int argc, char **argv)
{
    start(&argc, &argv);
    char *begin = sbrk(0);
    CHECK(begin != (void *)-1);
    for (int step = 0; step < 64; step++) {
        char *part = sbrk(MIB + 8);
        CHECK(part == begin + step * (MIB + 8));
        memset(part, rank + 1, MIB + 8);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (long at = 0; at < 64 * (MIB + 8); at += 4093)
        CHECK(begin[at] == rank + 1);
    CHECK(sbrk(-32 * (MIB + 8)) != (void *)-1 && sbrk(0) == begin + 32 * (MIB + 8));
    CHECK(brk(begin + 64 * MIB) == 0 && sbrk(0) == begin + 64 * MIB);
    CHECK(begin[40 * MIB] == 0 && begin[MIB] == rank + 1);
    errno = 0;
    CHECK(sbrk(PTRDIFF_MAX / 2) == (void *)-1 && errno == ENOMEM);
    CHECK(brk(begin - MIB) == -1);
    CHECK(sbrk(0) == begin + 64 * MIB);
    /* A child goes on with a copy. */
    pid_t child = fork();
    if (child == 0) {
        char *part = sbrk(MIB);
        if (part != begin + 64 * MIB || part[5] != 0)
            _exit(1);
        memset(part, 7, MIB);
        _exit(sbrk(0) != part + MIB || begin[MIB] != rank + 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(sbrk(0) == begin + 64 * MIB);
    return finish();
}
