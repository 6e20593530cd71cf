// Two strided messages of 2 MB reach a receiver that sleeps 200 ms, while a further rank idles
// in a barrier (the two-sided experiment of Daps, figure 4). Prints the time from before the
// receives are posted until they have completed: with all communication hidden it is the sleep.
// The arguments name the layouts of receiver and sender: v (vector) or c (contiguous).
//# ranks: 2 3
//# abi: mpi5
//# progress: all
//# alone: yes
//# stdout: total_ms
#include "check.h"
#include <sys/mman.h>
#include <time.h>
enum { BYTES = 2 << 20, STRIDE = 64, MESSAGES = 2, ROUNDS = 3, HUGE_PAGE = 2 << 20 };

static void sleep_ms(int ms) {
    struct timespec left = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&left, &left) != 0) continue;
}

static unsigned char pattern(int message, int i) { return (unsigned char)(i * 7 + i / 251 + message); }

/* Memory in huge pages where there are any: neither page faults nor the walks of page tables,
   which would cost more than the messages, are part of the experiment. */
static unsigned char *touched(size_t bytes) {
    unsigned char *memory = aligned_alloc(HUGE_PAGE, bytes);
    CHECK(memory != NULL);
    madvise(memory, bytes, MADV_HUGEPAGE);
    return memset(memory, 0, bytes);
}

static void run(int vector_in, int vector_out, MPI_Datatype vector) {
    int spread = rank == 0 ? vector_in : vector_out, step = spread ? STRIDE : 1;
    unsigned char *data[MESSAGES];
    MPI_Request requests[MESSAGES];
    for (int m = 0; m < MESSAGES && rank < 2; m++) {
        data[m] = touched((size_t)BYTES * STRIDE);
        for (int i = 0; rank == 1 && i < BYTES; i++) data[m][(size_t)i * step] = pattern(m, i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int m = 0; m < MESSAGES && rank < 2; m++) {
        int count = spread ? 1 : BYTES;
        MPI_Datatype type = spread ? vector : MPI_CHAR;
        if (rank == 0) MPI_Irecv(data[m], count, type, 1, m, MPI_COMM_WORLD, &requests[m]);
        else MPI_Isend(data[m], count, type, 0, m, MPI_COMM_WORLD, &requests[m]);
    }
    if (rank == 0) sleep_ms(200);
    if (rank < 2) MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    double total = MPI_Wtime() - begin;
    if (rank == 0) printf("total_ms %.3f\n", total * 1e3);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int m = 0; m < MESSAGES && rank < 2; m++) {
        for (int i = 0; rank == 0 && i < BYTES; i++) CHECK_EQ(data[m][(size_t)i * step], pattern(m, i));
        free(data[m]);
    }
}

int main(int argc, char **argv) {
    MPI_Datatype vector;
    start(&argc, &argv);
    int vector_in = argc < 2 || argv[1][0] == 'v', vector_out = argc < 3 || argv[2][0] == 'v';
    MPI_Type_vector(BYTES, 1, STRIDE, MPI_CHAR, &vector);
    MPI_Type_commit(&vector);
    for (int round = 0; round < ROUNDS; round++) run(vector_in, vector_out, vector);
    MPI_Type_free(&vector);
    return finish();
}
