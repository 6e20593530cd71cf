/* Programs that execute themselves: `again HOW`. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *how;

static int is(const char *wanted)
{
    return strcmp(how, wanted) == 0;
}

/* The program that is executed counts. */
static void execute(const char *file, char **argv)
{
    char count[12];
    const char *before = getenv("AGAIN");
    snprintf(count, sizeof count, "%d", before ? atoi(before) + 1 : 1);
    setenv("AGAIN", count, 1);
    execv(file, argv);
    perror(file);
    exit(4);
}

static void world(void)
{
    int size, rank, sum;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    rank++;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("run %s size %d sum %d\n", getenv("AGAIN") ? getenv("AGAIN") : "0", size, sum);
}

int main(int argc, char **argv)
{
    static char path[4096];
    int runs = getenv("AGAIN") ? atoi(getenv("AGAIN")) : 0;
    how = argv[1];
    if (runs == 0) {
        if (is("before") || is("twice") || (is("half") && *getenv("OMPI_COMM_WORLD_RANK") == '0'))
            execute(argv[0], argv);
        if (is("proc"))
            execute("/proc/self/exe", argv);
        if (is("renamed")) {
            argv[0] = "another";
            execute("/proc/self/exe", argv);
        }
        if (is("link")) {
            if (readlink("/proc/self/exe", path, sizeof path - 1) < 0)
                return 5;
            execute(path, argv);
        }
        if (is("canonical")) {
            if (!realpath("/proc/self/exe", path))
                return 5;
            execute(path, argv);
        }
        if (is("other"))
            execute(argv[2], argv);
    }
    if (runs == 1 && is("twice"))
        execute(argv[0], argv);
    MPI_Init(&argc, &argv);
    world();
    fflush(stdout);
    if (runs == 0 && is("middle"))
        execute(argv[0], argv);
    MPI_Finalize();
    if (runs == 0 && is("after"))
        execute(argv[0], argv);
    return 0;
}
