// COHORT_MALLOC=jemalloc: every function of the C library that allocates is jemalloc's, also for what the C library
// allocates itself; a block that was freed comes again with its pages; a forked rank allocates; and what a rank
// executes has the C library's malloc. Pages would go back after a minute, so a slow machine is given an hour.
//# ranks: 4 64
//# settings: COHORT_MALLOC=jemalloc
//# settings: _RJEM_MALLOC_CONF=dirty_decay_ms:3600000
//# libs: -ldl
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 16 << 20, ROUNDS = 16, PAGES = BYTES / 4096 };
#include "pages.h"

static const char LIBRARY[] = "libcohort_malloc.so";

static void is_in_library(const char *name) {
    Dl_info found;
    void *function = dlsym(RTLD_DEFAULT, name);
    CHECK(function != NULL && dladdr(function, &found) != 0);
    CHECK(strstr(found.dli_fname, LIBRARY) != NULL);
}

static void is_aligned(void *block, size_t alignment) {
    CHECK(block != NULL && (uintptr_t)block % alignment == 0);
    free(block);
}

static void functions(void) {
    static const char *names[] = {"malloc", "calloc", "realloc", "reallocarray", "free", "posix_memalign",
                                  "aligned_alloc", "memalign", "valloc", "pvalloc", "malloc_usable_size"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) is_in_library(names[i]);
    volatile size_t huge = SIZE_MAX / 2;
    void *block = NULL;
    errno = 0;
    CHECK(reallocarray(NULL, huge, 4) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(calloc(huge, 4) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(pvalloc(huge * 2) == NULL && errno == ENOMEM);
    CHECK(malloc(huge) == NULL);
    CHECK(posix_memalign(&block, 3, 8) == EINVAL);
    CHECK(posix_memalign(&block, 4096, 100) == 0);
    is_aligned(block, 4096);
    is_aligned(aligned_alloc(64, 100), 64);
    is_aligned(memalign(1 << 21, 100), 1 << 21);
    is_aligned(memalign(48, 100), 64);
    is_aligned(valloc(1), 4096);
    block = pvalloc(5000);
    CHECK(malloc_usable_size(block) >= 8192);
    is_aligned(block, 4096);
    int *numbers = reallocarray(NULL, 1000, sizeof *numbers);
    for (int i = 0; i < 1000; i++) numbers[i] = i;
    numbers = realloc(numbers, 1 << 20);
    for (int i = 0; i < 1000; i++) CHECK_EQ(numbers[i], i);
    free(numbers);
    char *text = strdup("the C library's own allocation");
    CHECK(malloc_usable_size(text) >= strlen(text) + 1);
    free(text);
}

// The second block may be taken elsewhere than the first one; soon there is no new page.
static void blocks(void) {
    long before = faults();
    for (int round = 0; round < ROUNDS; round++) use();
    CHECK(faults() - before < ROUNDS / 2 * PAGES);
}

// Runs `grep -q LIBRARY /proc/self/maps` in a child, which allocates before.
static void child(void) {
    int status;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        use();
        execlp("grep", "grep", "-q", LIBRARY, "/proc/self/maps", (char *)NULL);
        _exit(99);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 1);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    functions();
    if (size < 8) blocks();
    if (rank == 0) child();
    return finish();
}
