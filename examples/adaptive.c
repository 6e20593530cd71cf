// Heat on a plate with an adaptive stencil: bands of rows are refined where it matters, and then take eight small
// steps in place of one. Ranks exchange their outer rows while they compute the bands between them.
//
//     mpicc -O2 -o adaptive examples/adaptive.c && pip-exec -n 4 ./adaptive [balanced|imbalanced] [steps]
//
// Balanced: every eighth band is refined. Imbalanced: an eighth of the bands that lie together, and wander over the
// plate, so that one rank after the other has most of the work. What flows over an edge between bands is computed once
// in a step, the same on both sides; so no heat may be lost.
//# ranks: 1 3
//# progress: steal, none
//# args: imbalanced 10
//# stdout: right
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 4096, BANDS = 64, BAND = 4, FINE = 8 }; // BAND rows in a band
static const double FLOW = 0.2;

static int rank, size, first, bands, imbalanced; // this rank's bands begin at `first`

static double *row_of(double *plate, int row) { return &plate[(size_t)(row + 1) * COLUMNS]; }

static int parts_of(int band, int step) {
    int place = imbalanced ? (band + 2 * step) % BANDS / (BANDS / 8) : band % 8;
    return place == 0 ? FINE : 1;
}

// What flows into `to` from a neighbouring row.
static void flow(double *edge, const double *from, const double *to) {
    for (int col = 0; col < COLUMNS; col++) edge[col] = from ? FLOW * (from[col] - to[col]) : 0;
}

// One small step of a band; its first and last row get their share of what flows over the edges.
static void small_step(double (*now)[COLUMNS], double (*next)[COLUMNS], double (*edges)[COLUMNS], double share) {
    for (int row = 0; row < BAND; row++) {
        const double *mid = now[row], *up = row > 0 ? now[row - 1] : mid, *down = row + 1 < BAND ? now[row + 1] : mid;
        double in = share * FLOW;
        for (int col = 1; col < COLUMNS - 1; col++)
            next[row][col] = mid[col] + in * (up[col] + down[col] + mid[col - 1] + mid[col + 1] - 4 * mid[col]);
        for (int col = 0; col < COLUMNS; col += COLUMNS - 1)
            next[row][col] = mid[col] + in * (up[col] + down[col] + mid[col ? col - 1 : 1] - 3 * mid[col]);
    }
    for (int col = 0; col < COLUMNS; col++) {
        next[0][col] += share * edges[0][col];
        next[BAND - 1][col] += share * edges[1][col];
    }
}

static void update(double *old, double *new, int band, int step) {
    static double edges[2][COLUMNS], work[2][BAND][COLUMNS];
    int top = band * BAND, bottom = top + BAND - 1, parts = parts_of(first + band, step);
    flow(edges[0], first + band > 0 ? row_of(old, top - 1) : NULL, row_of(old, top));
    flow(edges[1], first + band + 1 < BANDS ? row_of(old, bottom + 1) : NULL, row_of(old, bottom));
    memcpy(work[0], row_of(old, top), sizeof work[0]);
    for (int part = 0; part < parts; part++) small_step(work[part % 2], work[1 - part % 2], edges, 1.0 / parts);
    memcpy(row_of(new, top), work[parts % 2], sizeof work[0]);
}

static void advance(double *old, double *new, int step) {
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    int rows = bands * BAND;
    MPI_Request requests[4];
    MPI_Irecv(row_of(old, -1), COLUMNS, MPI_DOUBLE, up, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(row_of(old, rows), COLUMNS, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(row_of(old, rows - 1), COLUMNS, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(row_of(old, 0), COLUMNS, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &requests[3]);
    for (int band = 1; band < bands - 1; band++) update(old, new, band, step);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    update(old, new, 0, step);
    if (bands > 1) update(old, new, bands - 1, step);
}

static double heat(double *plate) {
    double mine = 0, all;
    for (int cell = 0; cell < bands * BAND * COLUMNS; cell++) mine += row_of(plate, 0)[cell];
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    imbalanced = argc > 1 && strcmp(argv[1], "imbalanced") == 0;
    int steps = argc > 2 ? atoi(argv[2]) : 150;
    if (size > BANDS) MPI_Abort(MPI_COMM_WORLD, 2);
    first = BANDS * rank / size;
    bands = BANDS * (rank + 1) / size - first;
    size_t bytes = (size_t)(bands * BAND + 2) * COLUMNS * sizeof(double);
    double *old = calloc(1, bytes), *new = calloc(1, bytes);
    for (int row = 0; row < bands * BAND; row++)
        for (int col = 0; col < COLUMNS; col++) row_of(old, row)[col] = ((first * BAND + row) * 37 + col * 11) % 1000;
    double before = heat(old);

    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int step = 0; step < steps; step++) {
        advance(old, new, step);
        double *other = old;
        old = new;
        new = other;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - begin, lost = (before - heat(old)) / before;

    int wrong = !(lost < 1e-10 && lost > -1e-10);
    if (rank == 0) printf("adaptive: %.4f s, %s (%.1e of the heat lost)\n", seconds, wrong ? "WRONG" : "right", lost);
    free(old);
    free(new);
    MPI_Finalize();
    return wrong;
}
