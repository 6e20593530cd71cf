// For OpenMP: a team of each rank computes. A bound thread has a place; with the argument "apart", ranks use no CPU of
// one another. Prints the size of its world and the sum of all ranks plus one.
#define _GNU_SOURCE
#include <mpi.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TERMS = 100000 };

// The CPUs of this thread, of the first 64.
static unsigned long cpus(void) {
    unsigned long mask = 0;
    cpu_set_t own;
    sched_getaffinity(0, sizeof own, &own);
    for (int cpu = 0; cpu < 64; cpu++)
        mask |= (unsigned long)(CPU_ISSET(cpu, &own) != 0) << cpu;
    return mask;
}

static int meets_others(unsigned long mask, int rank, int size) {
    int meets = 0;
    unsigned long *masks = malloc(size * sizeof *masks);
    MPI_Allgather(&mask, 1, MPI_UNSIGNED_LONG, masks, 1, MPI_UNSIGNED_LONG, MPI_COMM_WORLD);
    for (int other = 0; other < size; other++)
        meets |= other != rank && masks[other] & mask;
    free(masks);
    return meets;
}

int main(int argc, char **argv) {
    int rank, size, provided, one, sum = 0, strays = 0;
    unsigned long mask = 0;
    long terms = 0, all = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
#pragma omp parallel reduction(+ : terms, strays) reduction(| : mask)
    {
        mask |= cpus();
        strays += omp_get_proc_bind() != omp_proc_bind_false && omp_get_place_num() < 0;
#pragma omp for
        for (int term = 0; term < TERMS; term++)
            terms += term;
    }
    if (argc > 1 && !strcmp(argv[1], "apart"))
        strays += meets_others(mask, rank, size);
    MPI_Allreduce(&terms, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (strays || all != size * (TERMS * (TERMS - 1L) / 2))
        printf("rank %d: %d stray, CPUs %lx, total %ld\n", rank, strays, mask, all);
    one = rank + 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("size %d sum %d\n", size, sum);
    fflush(stdout);
    return MPI_Finalize();
}
