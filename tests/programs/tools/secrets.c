// Sends a text that everybody knows between two ranks, in all the ways that messages and windows have, and looks at
// each byte. With the argument `add` it does so again after a pause.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 4 << 20 };

static char *out, *in;
static int rank, wrong;

// What a wiretap looks for: 24 letters, made here so that no file or command line has them.
static void fill(char *place, size_t length) {
    for (size_t at = 0; at < length; at++) {
        place[at] = (char)('A' + at % 24);
    }
}

static void check(size_t length) {
    for (size_t at = 0; at < length; at++) {
        wrong += in[at] != (char)('A' + at % 24);
    }
    memset(in, 0, LONGEST);
}

static void messages(void) {
    static const int lengths[] = {8, 100, 4096, 16384, 65536, 65537, 1 << 20, LONGEST};
    for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++) {
        int length = lengths[at];
        MPI_Sendrecv(out, length, MPI_CHAR, 1 - rank, 1, in, length, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        check((size_t)length);
    }
    // One with gaps travels in packets.
    MPI_Datatype gaps;
    MPI_Type_vector(LONGEST / 64, 24, 48, MPI_CHAR, &gaps);
    MPI_Type_commit(&gaps);
    MPI_Sendrecv(out, 1, gaps, 1 - rank, 2, in, LONGEST / 64 * 24, MPI_CHAR, 1 - rank, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    check(LONGEST / 64 * 24);
    MPI_Type_free(&gaps);
}

static void windows(void) {
    MPI_Win window;
    char *memory;
    MPI_Win_allocate(2 * LONGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    fill(memory, 2 * LONGEST);
    memset(memory, 0, LONGEST);
    MPI_Win_fence(0, window);
    MPI_Put(out, LONGEST / 2, MPI_CHAR, 1 - rank, 0, LONGEST / 2, MPI_CHAR, window);
    MPI_Accumulate(out + LONGEST / 2, LONGEST / 2, MPI_CHAR, 1 - rank, LONGEST / 2, LONGEST / 2, MPI_CHAR, MPI_REPLACE,
                   window);
    MPI_Win_fence(0, window);
    memcpy(in, memory, LONGEST);
    check(LONGEST);
    MPI_Get(in, LONGEST / 24 * 24, MPI_CHAR, 1 - rank, LONGEST / 24 * 24 + 24, LONGEST / 24 * 24, MPI_CHAR, window);
    MPI_Win_fence(0, window);
    check(LONGEST / 24 * 24);
    MPI_Win_free(&window);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    out = malloc(LONGEST);
    in = calloc(1, LONGEST);
    fill(out, LONGEST);
    messages();
    windows();
    if (argc > 1 && !strcmp(argv[1], "add")) {
        sleep(2);
        messages();
    }
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d wrong bytes\n", all);
    }
    MPI_Finalize();
    return all != 0;
}
