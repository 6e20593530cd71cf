/* Five-point stencil in two dimensions (Daps fig. 6): halos to the left and right are vectors,
   those above and below contiguous, all exchanged by MPI_Isend and MPI_Irecv before each step's
   MPI_Waitall. Time of one step's computation and of its exchange, by order of the matrix; medians
   over the steps of the mean over the ranks. The inner points are computed while halos travel. */
#include "pair.h"
enum { STEPS = 40, SIDES = 4 };
static double *now_grid, *next_grid;
static int rows, columns, sides[SIDES];
static MPI_Datatype column;

/* The field of a point; rows and columns 0 and the last ones are halos. */
static double *at(double *grid, int row, int col) { return grid + (size_t)row * (columns + 2) + col; }

static void relax(int row, int last_row, int first, int last) {
    for (; row <= last_row; row++) {
        const double *up = at(now_grid, row - 1, 0), *mid = at(now_grid, row, 0), *down = at(now_grid, row + 1, 0);
        double *out = at(next_grid, row, 0);
        for (int col = first; col <= last; col++)
            out[col] = 0.2 * (mid[col] + mid[col - 1] + mid[col + 1] + up[col] + down[col]);
    }
}

static void begin_exchange(MPI_Comm grid, MPI_Request *requests) {
    double *halo[SIDES] = {at(now_grid, 0, 1), at(now_grid, rows + 1, 1), at(now_grid, 1, 0),
                           at(now_grid, 1, columns + 1)};
    double *edge[SIDES] = {at(now_grid, 1, 1), at(now_grid, rows, 1), at(now_grid, 1, 1), at(now_grid, 1, columns)};
    for (int side = 0; side < SIDES; side++) {
        MPI_Datatype type = side < 2 ? MPI_DOUBLE : column;
        int count = side < 2 ? columns : 1;
        MPI_Irecv(halo[side], count, type, sides[side], side ^ 1, grid, &requests[side]);
        MPI_Isend(edge[side], count, type, sides[side], side, grid, &requests[SIDES + side]);
    }
}

/* One step; adds to the two times, in microseconds. */
static void step(MPI_Comm grid, double *computing, double *exchanging) {
    MPI_Request requests[2 * SIDES];
    double start = now_us();
    begin_exchange(grid, requests);
    double posted = now_us();
    relax(2, rows - 1, 2, columns - 1);
    double inner = now_us();
    MPI_Waitall(2 * SIDES, requests, MPI_STATUSES_IGNORE);
    double exchanged = now_us();
    relax(1, 1, 1, columns);
    relax(rows, rows, 1, columns);
    relax(2, rows - 1, 1, 1);
    relax(2, rows - 1, columns, columns);
    double *swap = now_grid;
    now_grid = next_grid;
    next_grid = swap;
    *exchanging = posted - start + exchanged - inner;
    *computing = now_us() - start - *exchanging;
}

static void measure(MPI_Comm grid, const int *dims, int order, int size) {
    double computing[STEPS], exchanging[STEPS];
    rows = order / dims[0];
    columns = order / dims[1];
    now_grid = calloc((size_t)(rows + 2) * (columns + 2), sizeof *now_grid);
    next_grid = calloc((size_t)(rows + 2) * (columns + 2), sizeof *next_grid);
    MPI_Type_vector(rows, 1, columns + 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    *at(now_grid, 1, 1) = 1;
    for (int i = 0; i < STEPS; i++) {
        double mine[2], sums[2];
        step(grid, &mine[0], &mine[1]);
        MPI_Allreduce(mine, sums, 2, MPI_DOUBLE, MPI_SUM, grid);
        computing[i] = sums[0] / size;
        exchanging[i] = sums[1] / size;
    }
    if (rank == 0) show("computation", order, spread_of(computing, STEPS));
    if (rank == 0) show("halo-exchange", order, spread_of(exchanging, STEPS));
    MPI_Type_free(&column);
    free(now_grid);
    free(next_grid);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    int size, dims[2] = {0, 0}, periods[2] = {1, 1};
    MPI_Comm grid;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Cart_shift(grid, 0, 1, &sides[0], &sides[1]);
    MPI_Cart_shift(grid, 1, 1, &sides[2], &sides[3]);
    for (int order = 256; order <= 2048; order *= 2) measure(grid, dims, order, size);
    MPI_Comm_free(&grid);
    return MPI_Finalize();
}
