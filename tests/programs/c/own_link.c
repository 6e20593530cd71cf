/* A rank's link to itself leads to its program, also where the compiler checks lengths, and not beyond the buffer. */
//# ranks: 2
//# abi: mpich mpi5 openmpi
//# libs: -O2 -D_FORTIFY_SOURCE=2
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[4096];
static char brief[8];

/* The end of a path. */
static const char *last(const char *of)
{
    const char *slash = strrchr(of, '/');
    return slash ? slash + 1 : of;
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    /* Sizes that the compiler does not know make calls of the functions that check them. */
    volatile size_t all = sizeof path - 1, some = sizeof brief;
    CHECK(readlink("/proc/self/exe", path, all) > 0);
    CHECK(!strcmp(last(path), last(argv[0])));
    memset(path, 0, sizeof path);
    CHECK(readlinkat(AT_FDCWD, "/proc/self/exe", path, all) > 0);
    CHECK(!strcmp(last(path), last(argv[0])));
    CHECK(readlink("/proc/self/exe", brief, some) == (ssize_t)sizeof brief);
    CHECK(!memcmp(brief, path, sizeof brief));
    /* A buffer that is shorter than its size ends who says so. */
    pid_t child = fork();
    if (child == 0) {
        some = sizeof brief + 1;
        signal(SIGABRT, SIG_DFL);
        close(2);
        _exit(readlink("/proc/self/exe", brief, some) < 0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    /* A child runs the same program. */
    child = fork();
    if (child == 0) {
        memset(path, 0, sizeof path);
        _exit(readlink("/proc/self/exe", path, all) <= 0 || strcmp(last(path), last(argv[0])) != 0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return finish();
}
