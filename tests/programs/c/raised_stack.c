/* A program raises its limit of the stack, and has a large array there, also for system calls and messages. */
//# ranks: 2
//# abi: mpich mpi5 openmpi
#define _GNU_SOURCE
#include "check.h"
#include <alloca.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#define LENGTH (60UL << 20)

static __attribute__((noinline)) void use(int rank)
{
    char *array = alloca(LENGTH);
    /* The kernel is the first to write there, in the part that is far from what was used. */
    int ends[2];
    CHECK(pipe(ends) == 0 && write(ends[1], "text", 4) == 4);
    CHECK(read(ends[0], array, 4) == 4 && memcmp(array, "text", 4) == 0);
    MPI_Status status;
    memset(array + LENGTH / 2, rank, LENGTH / 2);
    MPI_Sendrecv(array + LENGTH / 2, LENGTH / 2, MPI_CHAR, !rank, 1, array, LENGTH / 2, MPI_CHAR, !rank, 1,
                 MPI_COMM_WORLD, &status);
    for (size_t at = 0; at < LENGTH / 2; at += 4096)
        CHECK(array[at] == !rank && array[LENGTH / 2 + at] == rank);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_STACK, &limit) == 0);
    limit.rlim_cur = 100 << 20;
    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < limit.rlim_cur)
        limit.rlim_cur = limit.rlim_max;
    CHECK((rank ? setrlimit(RLIMIT_STACK, &limit) : prlimit(0, RLIMIT_STACK, &limit, NULL)) == 0);
    if (limit.rlim_cur > LENGTH + (1 << 20))
        use(rank);
    pthread_attr_t attributes;
    void *lowest;
    size_t length;
    char here;
    CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0);
    CHECK(pthread_attr_getstack(&attributes, &lowest, &length) == 0);
    CHECK((char *)lowest < &here && &here < (char *)lowest + length);
    CHECK(length + (1 << 20) > limit.rlim_cur);
    return finish();
}
