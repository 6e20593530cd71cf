/* flood COUNT MEGABYTES: rank 1 starts COUNT sends that rank 0 receives later; meanwhile the memory of rank 0's node
 * grows by no more than so many megabytes. Then they come in other orders. Every value is verified. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Without mapped files: whoever looks at the job has its launcher read some. */
static long memory(void) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long kilobytes = -1;
    while (file && fgets(line, sizeof line, file)) {
        if (!strncmp(line, "RssAnon:", 8)) {
            kilobytes = atol(line + 8);
        }
    }
    fclose(file);
    return kilobytes;
}

static void fail(const char *what, long index) {
    printf("%s, message %ld\n", what, index);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void take(int source, int tag, long expected) {
    long value = -1;
    MPI_Recv(&value, 1, MPI_LONG, source, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (value != expected) {
        fail("a wrong value", expected);
    }
}

int main(int argc, char **argv) {
    long count = argc > 2 ? atol(argv[1]) : 1000, megabytes = argc > 2 ? atol(argv[2]) : 0;
    int rank;
    MPI_Comm other;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    enum { IN_ORDER, REVERSED, PROBED, ROUNDS };
    for (int round = 0; round < ROUNDS; round++) {
        /* What comes last first is what the receiver has to remember. */
        long messages = round == IN_ORDER ? count : count / 10;
        MPI_Barrier(MPI_COMM_WORLD);
        long before = memory();
        if (rank == 1) {
            MPI_Request *requests = malloc(messages * sizeof *requests);
            long *values = malloc(messages * sizeof *values);
            for (long i = 0; i < messages; i++) {
                values[i] = i;
                int tag = round == IN_ORDER ? 7 : (int)(i % 30000);
                MPI_Isend(&values[i], 1, MPI_LONG, 0, tag, MPI_COMM_WORLD, &requests[i]);
            }
            /* Packets of a pair of ranks come in order: whoever has this has all that was sent before. */
            MPI_Send(&rank, 1, MPI_INT, 0, 1, other);
            MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
            free(values);
            free(requests);
        } else if (rank == 0) {
            int sender = -1, found = 0;
            MPI_Recv(&sender, 1, MPI_INT, 1, 1, other, MPI_STATUS_IGNORE);
            if (sender != 1) {
                fail("a wrong sender", sender);
            }
            if (round == IN_ORDER) {
                long grown = memory() - before;
                printf("%ld messages, grown by %ld kB\n", messages, grown);
                if (grown > megabytes * 1024) {
                    fail("too much memory", messages);
                }
                for (long i = 0; i < messages; i++) {
                    take(i % 2 ? MPI_ANY_SOURCE : 1, i % 3 ? MPI_ANY_TAG : 7, i);
                }
            } else if (round == REVERSED) {
                for (long i = (messages < 30000 ? messages : 30000) - 1; i >= 0; i--) {
                    for (long j = i; j < messages; j += 30000) {
                        take(1, (int)i, j);
                    }
                }
            } else {
                int last = (int)(messages < 30000 ? messages : 30000) - 1;
                while (!found) {
                    MPI_Iprobe(MPI_ANY_SOURCE, last, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
                }
                for (long i = 0; i < messages; i++) {
                    take(MPI_ANY_SOURCE, MPI_ANY_TAG, i);
                }
            }
        }
    }
    MPI_Comm_free(&other);
    if (rank == 0) {
        printf("passed\n");
    }
    MPI_Finalize();
    return 0;
}
