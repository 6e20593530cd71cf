/* Rank 1 changes what the kernel keeps with the address space, each setting twice, and reads what it has set. The other
   one does one of that after it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK(held)                                             \
    do {                                                        \
        if (!(held)) {                                          \
            fprintf(stderr, "line %d: %s\n", __LINE__, #held);  \
            MPI_Abort(MPI_COMM_WORLD, 1);                       \
        }                                                       \
    } while (0)

#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#define PR_GET_MEMORY_MERGE 68
#endif

/* What `open` becomes where arguments are checked and flags are not known. */
int __open_2(const char *path, int flags);

/* Writes the value that holds already. */
static void adjust(const char *path, int how)
{
    char value[32] = "";
    FILE *file = fopen("/proc/self/oom_score_adj", "r");
    CHECK(file && fgets(value, sizeof value, file));
    fclose(file);
    if (how == 0) {
        CHECK((file = fopen(path, "w")) && fputs(value, file) >= 0);
        CHECK(fclose(file) == 0);
        return;
    }
    if (how == 3) {
        CHECK((file = freopen(path, "w", stdin)) && fputs(value, file) >= 0);
        CHECK(fclose(file) == 0);
        return;
    }
    if (how > 3) {
        int made = how == 4 ? creat(path, 0600) : __open_2(path, O_WRONLY);
        CHECK(made >= 0 && write(made, value, strlen(value)) > 0);
        close(made);
        return;
    }
    int descriptor = how == 1 ? open(path, O_WRONLY | O_CLOEXEC) : openat(AT_FDCWD, path, O_RDWR);
    CHECK(descriptor >= 0 && write(descriptor, value, strlen(value)) > 0);
    close(descriptor);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* What changes nothing. */
    CHECK(prctl(PR_SET_DUMPABLE, 1) == 0 && prctl(PR_GET_DUMPABLE) == 1);
    CHECK(prctl(PR_SET_NAME, "named") == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        char own[64];
        snprintf(own, sizeof own, "/proc/%d/oom_score_adj", (int)getpid());
        if (argc > 1)
            adjust(argc > 2 ? own : "/proc/self/oom_score_adj", atoi(argv[1]));
        for (int turn = 0; turn < 2; turn++) {
            CHECK(prctl(PR_SET_DUMPABLE, 0) == 0 && prctl(PR_GET_DUMPABLE) == 0);
            CHECK(prctl(PR_SET_DUMPABLE, 1) == 0);
            CHECK(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
            CHECK(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1);
            CHECK(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0) == 0);
            /* Kernels and limits may not allow these. */
            if (prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0) == 0) {
                CHECK(prctl(PR_GET_MEMORY_MERGE, 0, 0, 0, 0) == 1);
                CHECK(prctl(PR_SET_MEMORY_MERGE, 0, 0, 0, 0) == 0);
                if (turn == 0) puts("merges");
            }
            if (mlockall(MCL_FUTURE) == 0 && turn == 0) puts("locks");
            CHECK(munlockall() == 0);
        }
        struct rlimit limit = {1UL << 46, RLIM_INFINITY};
        CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
        limit.rlim_cur = RLIM_INFINITY;
        CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
        FILE *references = fopen("/proc/self/clear_refs", "w");
        CHECK(references && fputs("4", references) >= 0 && fclose(references) == 0);
        /* A file is made with the mode that is asked for. */
        char made[] = "sets.made";
        umask(0);
        int descriptor = open(made, O_CREAT | O_WRONLY | O_TRUNC, 0640);
        struct stat facts;
        CHECK(descriptor >= 0 && fstat(descriptor, &facts) == 0 && (facts.st_mode & 0777) == 0640);
        close(descriptor);
        CHECK(access(made, R_OK) == 0 && unlink(made) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(munlockall() == 0);
    if (rank == 0)
        puts("passed");
    MPI_Finalize();
}
