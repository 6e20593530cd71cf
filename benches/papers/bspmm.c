/* Two-stage block sparse matrix multiplication (Daps, section VI-B1): get blocks, multiply,
 * accumulate the product. The first stage computes more, the second one communicates more; smaller
 * than in the paper, to fit two CPUs. A block is a subarray of 50^3 doubles at its target and
 * contiguous at its origin. Prints "name milliseconds" for each part of each stage, at the slowest
 * rank.
 *   bspmm real|sleep     the multiplication, or as much sleep
 */
#include "pair.h"

enum { EDGE = 50, WHOLE = 64, BLOCK = EDGE * EDGE * EDGE, ORDER = 192, SLEEP_US = 4000 };
struct stage {
    int products, blocks;
};
static const struct stage stages[] = {{24, 24}, {6, 96}};
enum { STAGES = sizeof stages / sizeof *stages };
static int size, sleeps;
static double left[ORDER][ORDER], right[ORDER][ORDER], product[ORDER][ORDER], block[BLOCK];

static void multiply(void) {
    if (sleeps) {
        struct timespec time = {.tv_nsec = SLEEP_US * 1000L};
        nanosleep(&time, NULL);
        return;
    }
    for (int i = 0; i < ORDER; i++)
        for (int k = 0; k < ORDER; k++)
            for (int j = 0; j < ORDER; j++) product[i][j] += left[i][k] * right[k][j];
}

/* `times`: computation, then communication. */
static void run_stage(const struct stage *stage, MPI_Datatype subarray, MPI_Win win, double times[2]) {
    int done = 0;
    times[0] = times[1] = 0;
    for (int task = 0; task < stage->products; task++) {
        int until = stage->blocks * (task + 1) / stage->products;
        double start = now_us();
        for (int i = done; i < until; i++) MPI_Get(block, BLOCK, MPI_DOUBLE, (rank + i) % size, 0, 1, subarray, win);
        MPI_Win_flush_all(win);
        double fetched = now_us();
        multiply();
        double multiplied = now_us();
        for (; done < until; done++)
            MPI_Accumulate(block, BLOCK, MPI_DOUBLE, (rank + done) % size, 0, 1, subarray, MPI_SUM, win);
        MPI_Win_flush_all(win);
        times[0] += multiplied - fetched;
        times[1] += fetched - start + now_us() - multiplied;
    }
    double start = now_us();
    MPI_Barrier(MPI_COMM_WORLD);
    times[1] += now_us() - start;
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sleeps = argc > 1 && argv[1][0] == 's';
    for (int i = 0; i < ORDER; i++)
        for (int j = 0; j < ORDER; j++) left[i][j] = right[i][j] = (i + j) % 7;
    double *memory;
    MPI_Win win;
    MPI_Win_allocate(WHOLE * WHOLE * WHOLE * sizeof(double), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 0, WHOLE * WHOLE * WHOLE * sizeof(double));
    MPI_Datatype subarray;
    const int whole[] = {WHOLE, WHOLE, WHOLE}, part[] = {EDGE, EDGE, EDGE}, first[] = {7, 7, 7};
    MPI_Type_create_subarray(3, whole, part, first, MPI_ORDER_C, MPI_DOUBLE, &subarray);
    MPI_Type_commit(&subarray);
    MPI_Win_lock_all(0, win);
    for (int stage = -1; stage < STAGES; stage++) {
        double times[2], slowest[2];
        MPI_Barrier(MPI_COMM_WORLD);
        run_stage(&stages[stage < 0 ? 0 : stage], subarray, win, times);
        MPI_Reduce(times, slowest, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank != 0 || stage < 0) continue;
        printf("compute-%d %.2f\ncommunicate-%d %.2f\n", stage + 1, slowest[0] / 1000, stage + 1, slowest[1] / 1000);
    }
    MPI_Win_unlock_all(win);
    MPI_Type_free(&subarray);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
