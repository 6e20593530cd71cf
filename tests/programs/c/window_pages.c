// The pages of a window are touched first by the member whose part they are, also in a shared window, which one member
// allocates for all: the kernel takes memory from the NUMA node of the task that touches it first. Where all nodes are
// one, the page faults tell who did.
//# ranks: 2
#include "check.h"
#include <sys/resource.h>

enum { BYTES = 512 << 10, PAGES = BYTES / 4096 };

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static void all_pages(char *memory) {
    for (int at = 0; at < BYTES; at++) CHECK(memory[at] == 0);
    memset(memory, rank + 1, BYTES);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Win win;
    MPI_Comm node;
    char *memory;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    long before = faults();
    MPI_Win_allocate_shared(BYTES, 1, MPI_INFO_NULL, node, &memory, &win);
    long taken = faults() - before;
    CHECK(taken > PAGES * 3 / 4);
    before = faults();
    all_pages(memory);
    CHECK(faults() - before < PAGES / 4);
    MPI_Win_free(&win);
    MPI_Comm_free(&node);

    before = faults();
    MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    taken = faults() - before;
    CHECK(taken > PAGES * 3 / 4);
    before = faults();
    all_pages(memory);
    CHECK(faults() - before < PAGES / 4);
    MPI_Win_free(&win);
    return finish();
}
