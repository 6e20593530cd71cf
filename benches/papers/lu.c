/* The LU decomposition of "Nonblocking Epochs in MPI One-Sided Communication" (figure 13): the rows
 * of a matrix are dealt out to the ranks in turn, and whoever has finished a row puts it into
 * everybody's window, in an epoch between start and complete. The result is compared with a
 * decomposition by one rank. Prints "mode 13-lu milliseconds".
 *   lu blocking|nonblocking
 */
#include "pair.h"

enum { SIZE = 600, RUNS = 3 };
typedef double row[SIZE];
static int size;

/* A matrix that needs no pivoting: large on the diagonal, and anything else elsewhere. */
static double element(int i, int j) { return i == j ? SIZE : (double)((i * 7919 + j * 104729) % 1000) / 1000; }

static void update(row *matrix, int pivot, const double *pivot_row, int first, int step) {
    for (int i = first; i < SIZE; i += step) {
        double factor = matrix[i][pivot] / pivot_row[pivot];
        matrix[i][pivot] = factor;
        for (int j = pivot + 1; j < SIZE; j++) matrix[i][j] -= factor * pivot_row[j];
    }
}

/* The next row of this rank's after `pivot`. */
static int first_after(int pivot) {
    int first = pivot + 1;
    return first + (rank - first % size + size) % size;
}

/* Finished rows, wherever they were made, come into the window. `groups`: everybody but one, for
   each, and then each alone. */
static double decompose(row *matrix, row *finished, MPI_Win win, const MPI_Group *groups, int blocking) {
    static MPI_Request requests[SIZE];
    int closed = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_us();
    for (int pivot = 0; pivot < SIZE; pivot++) {
        int owner = pivot % size, first = first_after(pivot);
        MPI_Aint cells = SIZE - pivot;
        if (rank != owner) {
            MPI_Win_post(groups[size + owner], 0, win);
            MPI_Win_wait(win);
            update(matrix, pivot, finished[pivot], first, size);
            continue;
        }
        MPI_Win_start(groups[rank], 0, win);
        for (int to = 0; to < size; to++) {
            MPI_Aint place = (MPI_Aint)pivot * SIZE + pivot;
            if (to == rank) memcpy(&finished[pivot][pivot], &matrix[pivot][pivot], (size_t)cells * sizeof(double));
            else MPI_Put(&matrix[pivot][pivot], cells, MPI_DOUBLE, to, place, cells, MPI_DOUBLE, win);
        }
        if (!blocking) MPIX_Win_icomplete(win, &requests[closed++]);
        update(matrix, pivot, finished[pivot], first, size);
        if (blocking) MPI_Win_complete(win);
    }
    MPI_Waitall(closed, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    return (now_us() - start) / 1000;
}

static void check(row *finished) {
    row *alone = malloc(sizeof(row) * SIZE);
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) alone[i][j] = element(i, j);
    for (int pivot = 0; pivot < SIZE; pivot++) update(alone, pivot, alone[pivot], pivot + 1, 1);
    for (int i = 0; i < SIZE; i++) {
        for (int j = i; j < SIZE; j++) {
            if (alone[i][j] == finished[i][j]) continue;
            fprintf(stderr, "row %d, column %d: %g instead of %g\n", i, j, finished[i][j], alone[i][j]);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    free(alone);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int blocking = argc > 1 && argv[1][0] == 'b';
    row *matrix = malloc(sizeof(row) * SIZE), *finished;
    MPI_Win win;
    MPI_Win_allocate(sizeof(row) * SIZE, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &finished, &win);
    MPI_Group everybody, *groups = malloc(2 * (size_t)size * sizeof *groups);
    MPI_Comm_group(MPI_COMM_WORLD, &everybody);
    for (int member = 0; member < size; member++) {
        MPI_Group_excl(everybody, 1, &member, &groups[member]);
        MPI_Group_incl(everybody, 1, &member, &groups[size + member]);
    }
    double times[RUNS];
    for (int run = 0; run < RUNS; run++) {
        for (int i = 0; i < SIZE; i++)
            for (int j = 0; j < SIZE; j++) matrix[i][j] = element(i, j);
        times[run] = decompose(matrix, finished, win, groups, blocking);
    }
    check(finished);
    if (rank == 0) printf("%s 13-lu-ms %.1f\n", blocking ? "blocking" : "nonblocking", median(times, RUNS));
    for (int group = 0; group < 2 * size; group++) MPI_Group_free(&groups[group]);
    MPI_Group_free(&everybody);
    MPI_Win_free(&win);
    free(groups);
    free(matrix);
    MPI_Finalize();
    return 0;
}
