/* A library with code on the stack: linked, or opened before or after the stack is enlarged. It is called from far down
   in the stack, and from a thread. With NESTED the program has such code itself. */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static int rank;
#ifdef LINKED
float row_total(int, int);
static float (*total)(int, int) = row_total;
#else
static float (*total)(int, int);
#endif

static void *look(void *failed)
{
    if (total && total(rank + 2, 4) != 10 * (rank + 2))
        *(int *)failed = 1;
#ifdef NESTED
    int add(int value) { return value + rank; }
    int (*volatile added)(int) = add;
    if (added(10) != rank + 10)
        *(int *)failed = 2;
#endif
    return NULL;
}

__attribute__((noinline)) static int far_down(size_t length)
{
    int failed = 0;
    volatile char *array = alloca(length);
    for (size_t at = 0; at < length; at += 4096)
        array[length - 1 - at] = 1;
    look(&failed);
    return failed + (array[0] > 1);
}

static int open_it(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    if (!library)
        return fprintf(stderr, "%s\n", dlerror()), 1;
    total = (float (*)(int, int))dlsym(library, "row_total");
    return total == NULL;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int failed = 0, is_late = argc > 2 && !strcmp(argv[2], "late");
    if (argc > 1 && !is_late && open_it(argv[1]))
        return 3;
    struct rlimit limit;
    getrlimit(RLIMIT_STACK, &limit);
    limit.rlim_cur = 64 << 20;
    if (setrlimit(RLIMIT_STACK, &limit))
        return 4;
    if (argc > 1 && is_late && open_it(argv[1]))
        return 5;
    failed = far_down(48 << 20);
    pthread_t thread;
    pthread_create(&thread, NULL, look, &failed);
    pthread_join(thread, NULL);
    int any;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        puts(any ? "failed" : "passed");
    MPI_Finalize();
    return any;
}
