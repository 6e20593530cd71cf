// Memory that a rank has freed goes back to the kernel when the rank sleeps in MPI, all but 64 MB of it. The blocks are
// too short for mappings of their own.
//# ranks: 2

#include "check.h"
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 64 << 10, BLOCKS = 2048, PAGE = 4096, ALLOWED = 66 << 20 };

static char *blocks[BLOCKS];

/* Bytes of the freed blocks that still have memory. What is no longer mapped has none. */
static long held(void) {
    long found = 0;
    for (int block = 0; block < BLOCKS; block++) {
        uintptr_t first = ((uintptr_t)blocks[block] + PAGE - 1) / PAGE * PAGE;
        unsigned char pages[BYTES / PAGE - 1];
        if (mincore((void *)first, sizeof pages * PAGE, pages) != 0) continue;
        for (size_t page = 0; page < sizeof pages; page++) found += pages[page] & 1 ? PAGE : 0;
    }
    return found;
}

/* Rank 0 waits for rank 1, which takes its time. Whether rank 1 is to go on. */
static int wait_for(int goes_on) {
    if (rank == 0) {
        MPI_Recv(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&goes_on, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    } else {
        usleep(30000);
        MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);
        MPI_Recv(&goes_on, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return goes_on;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    for (int round = 0; round < 2; round++) {
        if (rank == 0) {
            for (int block = 0; block < BLOCKS; block++) {
                blocks[block] = malloc(BYTES);
                memset(blocks[block], 1, BYTES);
            }
            CHECK(held() > ALLOWED);
            for (int block = 0; block < BLOCKS; block++) free(blocks[block]);
        }
        /* The trial's own limit ends one that waits for ever. */
        while (wait_for(rank == 0 && held() > ALLOWED)) {
        }
    }
    return finish();
}
