// Conjugate gradients: solves A x = b on a grid of points, whose rows the ranks share. Each iteration exchanges a row
// with both neighbours while the inside is computed, and adds two numbers over all ranks.
//
//     mpicc -O2 -o cg examples/cg.c -lm && pip-exec -n 4 ./cg [balanced|imbalanced] [iterations]
//
// Imbalanced: odd ranks have three times the rows of even ones. The solution is known, and compared.
//# ranks: 1 3
//# progress: steal, none
//# args: imbalanced 60
//# stdout: right
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 768, COLUMNS = 768 };

static int rank, size, first, rows; // this rank's rows begin at `first`
static MPI_Comm world = MPI_COMM_WORLD;

// Rows of this rank and of the neighbours, in front of and behind them.
static double *new_field(void) { return calloc((size_t)(rows + 2) * COLUMNS, sizeof(double)); }

static double *row_of(double *field, int row) { return &field[(size_t)(row + 1) * COLUMNS]; }

static void multiply_row(double *field, double *result, int row) {
    const double *mid = row_of(field, row), *up = mid - COLUMNS, *down = mid + COLUMNS;
    double *to = row_of(result, row);
    to[0] = 4.1 * mid[0] - mid[1] - up[0] - down[0];
    for (int col = 1; col < COLUMNS - 1; col++)
        to[col] = 4.1 * mid[col] - mid[col - 1] - mid[col + 1] - up[col] - down[col];
    to[COLUMNS - 1] = 4.1 * mid[COLUMNS - 1] - mid[COLUMNS - 2] - up[COLUMNS - 1] - down[COLUMNS - 1];
}

// result = A field; the rows of neighbours travel while those in the middle are computed.
static void multiply(double *field, double *result) {
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    MPI_Request requests[4];
    MPI_Irecv(row_of(field, -1), COLUMNS, MPI_DOUBLE, up, 0, world, &requests[0]);
    MPI_Irecv(row_of(field, rows), COLUMNS, MPI_DOUBLE, down, 1, world, &requests[1]);
    MPI_Isend(row_of(field, rows - 1), COLUMNS, MPI_DOUBLE, down, 0, world, &requests[2]);
    MPI_Isend(row_of(field, 0), COLUMNS, MPI_DOUBLE, up, 1, world, &requests[3]);
    for (int row = 1; row < rows - 1; row++) multiply_row(field, result, row);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    multiply_row(field, result, 0);
    if (rows > 1) multiply_row(field, result, rows - 1);
}

static double dot(double *left, double *right) {
    double mine = 0, sum;
    for (int cell = COLUMNS; cell < (rows + 1) * COLUMNS; cell++) mine += left[cell] * right[cell];
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, world);
    return sum;
}

// to += factor * from
static void add(double *to, double factor, const double *from) {
    for (int cell = COLUMNS; cell < (rows + 1) * COLUMNS; cell++) to[cell] += factor * from[cell];
}

static void solve(double *x, double *residual, int iterations) {
    double *direction = new_field(), *product = new_field();
    memcpy(direction, residual, (size_t)(rows + 2) * COLUMNS * sizeof(double));
    double square = dot(residual, residual);
    for (int iteration = 0; iteration < iterations; iteration++) {
        multiply(direction, product);
        double step = square / dot(direction, product);
        add(x, step, direction);
        add(residual, -step, product);
        double next = dot(residual, residual), ratio = next / square;
        for (int cell = COLUMNS; cell < (rows + 1) * COLUMNS; cell++)
            direction[cell] = residual[cell] + ratio * direction[cell];
        square = next;
    }
    free(direction);
    free(product);
}

// Shares the rows: odd ranks have `weight` times as many as even ones.
static void share(int weight) {
    int parts = 0, before = 0, mine = rank % 2 ? weight : 1;
    for (int other = 0; other < size; other++) {
        if (other == rank) before = parts;
        parts += other % 2 ? weight : 1;
    }
    first = ROWS * before / parts;
    rows = ROWS * (before + mine) / parts - first;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    share(argc > 1 && strcmp(argv[1], "imbalanced") == 0 ? 3 : 1);
    double *known = new_field(), *right_side = new_field(), *x = new_field();
    for (int row = 0; row < rows; row++)
        for (int col = 0; col < COLUMNS; col++) row_of(known, row)[col] = sin(0.05 * (first + row)) + cos(0.11 * col);
    multiply(known, right_side);

    MPI_Barrier(world);
    double begin = MPI_Wtime();
    solve(x, right_side, argc > 2 ? atoi(argv[2]) : 200);
    MPI_Barrier(world);
    double seconds = MPI_Wtime() - begin, mine = 0, furthest;

    for (int cell = COLUMNS; cell < (rows + 1) * COLUMNS; cell++) mine = fmax(mine, fabs(x[cell] - known[cell]));
    MPI_Allreduce(&mine, &furthest, 1, MPI_DOUBLE, MPI_MAX, world);
    int wrong = !(furthest < 1e-4);
    if (rank == 0) printf("cg: %.4f s, %s (error %.1e)\n", seconds, wrong ? "WRONG" : "right", furthest);
    free(known);
    free(right_side);
    free(x);
    MPI_Finalize();
    return wrong;
}
