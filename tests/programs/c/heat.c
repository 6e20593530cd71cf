// Heat on a plate: a multi-stage solver whose stages alternate between computation and
// communication, on a 2-D grid of ranks. Halo rows are contiguous, halo columns are vectors,
// and both are deep (8 layers), so that they are large messages. Every stage
//   1. starts the exchange of its halos (Isend/Irecv),
//   2. updates the inside, which needs no halo (computation-heavy),
//   3. waits for the halos (communication-heavy),
//   4. updates the border.
// The solver runs twice, first with the exchange finished before the computation begins, then
// with both overlapped; both must give the same temperatures. Ranks get unequal work in turn,
// so that in each stage some wait for others.
// Arguments: stages (24), side of a rank's tile in cells (1024).
//# ranks: 1 2 4
//# progress: steal, none, thread, signal
//# args: 6 256
//# stdout: communication hidden
#include "check.h"
#include <math.h>
#include <string.h>
enum { DEPTH = 8 };

struct plate {
    int side, width; /* cells of the tile, and of a row with halos */
    double *now, *next;
    MPI_Comm grid;
    MPI_Datatype column;
    int up, down, left, right;
};

struct times { double total, compute, wait; };

static double *cell(const struct plate *p, double *field, int row, int col) {
    return &field[(size_t)(row + DEPTH) * p->width + col + DEPTH];
}

static void make_plate(struct plate *p, int side) {
    int dims[2], coords[2];
    for (dims[0] = (int)sqrt(size); size % dims[0] != 0;) dims[0]--;
    dims[1] = size / dims[0];
    coords[0] = rank / dims[1];
    coords[1] = rank % dims[1];
    MPI_Comm_dup(MPI_COMM_WORLD, &p->grid);
    p->up = coords[0] > 0 ? rank - dims[1] : MPI_PROC_NULL;
    p->down = coords[0] + 1 < dims[0] ? rank + dims[1] : MPI_PROC_NULL;
    p->left = coords[1] > 0 ? rank - 1 : MPI_PROC_NULL;
    p->right = coords[1] + 1 < dims[1] ? rank + 1 : MPI_PROC_NULL;
    p->side = side;
    p->width = side + 2 * DEPTH;
    p->now = calloc((size_t)p->width * p->width, sizeof(double));
    p->next = calloc((size_t)p->width * p->width, sizeof(double));
    CHECK(p->now && p->next);
    MPI_Type_vector(side, DEPTH, p->width, MPI_DOUBLE, &p->column);
    MPI_Type_commit(&p->column);
}

static void heat_up(struct plate *p) {
    memset(p->now, 0, sizeof(double) * p->width * p->width);
    memset(p->next, 0, sizeof(double) * p->width * p->width);
    for (int row = 0; row < p->side; row++)
        for (int col = 0; col < p->side; col++)
            *cell(p, p->now, row, col) = 20 + (row * 37 + col * 11 + rank * 101) % 80;
}

/* Halo rows travel with the full width of the tile, halo columns as vectors. */
static void start_exchange(struct plate *p, MPI_Request requests[8]) {
    int side = p->side, row = DEPTH * p->width;
    double *f = p->now;
    MPI_Irecv(cell(p, f, -DEPTH, -DEPTH), row, MPI_DOUBLE, p->up, 0, p->grid, &requests[0]);
    MPI_Irecv(cell(p, f, side, -DEPTH), row, MPI_DOUBLE, p->down, 1, p->grid, &requests[1]);
    MPI_Irecv(cell(p, f, 0, -DEPTH), 1, p->column, p->left, 2, p->grid, &requests[2]);
    MPI_Irecv(cell(p, f, 0, side), 1, p->column, p->right, 3, p->grid, &requests[3]);
    MPI_Isend(cell(p, f, side - DEPTH, -DEPTH), row, MPI_DOUBLE, p->down, 0, p->grid, &requests[4]);
    MPI_Isend(cell(p, f, 0, -DEPTH), row, MPI_DOUBLE, p->up, 1, p->grid, &requests[5]);
    MPI_Isend(cell(p, f, 0, side - DEPTH), 1, p->column, p->right, 2, p->grid, &requests[6]);
    MPI_Isend(cell(p, f, 0, 0), 1, p->column, p->left, 3, p->grid, &requests[7]);
}

static void update(struct plate *p, int first_row, int end_row, int first_col, int end_col) {
    int w = p->width;
    for (int row = first_row; row < end_row; row++) {
        for (int col = first_col; col < end_col; col++) {
            const double *c = cell(p, p->now, row, col);
            *cell(p, p->next, row, col) = 0.5 * c[0] + 0.125 * (c[-1] + c[1] + c[-w] + c[w]);
        }
    }
}

static void update_inside(struct plate *p, int stage) {
    /* The heavy ranks change from stage to stage. */
    int sweeps = (stage + rank) % 2 ? 6 : 1;
    for (int sweep = 0; sweep < sweeps; sweep++) update(p, 1, p->side - 1, 1, p->side - 1);
}

static void update_border(struct plate *p) {
    int side = p->side;
    update(p, 0, 1, 0, side);
    update(p, side - 1, side, 0, side);
    update(p, 1, side - 1, 0, 1);
    update(p, 1, side - 1, side - 1, side);
    double *last = p->now;
    p->now = p->next;
    p->next = last;
}

static struct times solve(struct plate *p, int stages, int overlapped) {
    struct times times = {0, 0, 0};
    MPI_Request requests[8];
    heat_up(p);
    MPI_Barrier(p->grid);
    double begin = MPI_Wtime();
    for (int stage = 0; stage < stages; stage++) {
        double t0 = MPI_Wtime();
        start_exchange(p, requests);
        if (!overlapped) MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
        double t1 = MPI_Wtime();
        update_inside(p, stage);
        double t2 = MPI_Wtime();
        if (overlapped) MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
        double t3 = MPI_Wtime();
        update_border(p);
        times.wait += t1 - t0 + t3 - t2;
        times.compute += t2 - t1 + MPI_Wtime() - t3;
    }
    times.total = MPI_Wtime() - begin;
    return times;
}

static double temperature(struct plate *p) {
    double sum = 0, all;
    for (int row = 0; row < p->side; row++)
        for (int col = 0; col < p->side; col++) sum += *cell(p, p->now, row, col);
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, p->grid);
    return all / ((double)p->side * p->side * size);
}

/* Mean over the ranks, in milliseconds. */
static struct times mean_ms(struct times mine) {
    struct times mean;
    MPI_Allreduce(&mine, &mean, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double scale = 1e3 / size;
    return (struct times){mean.total * scale, mean.compute * scale, mean.wait * scale};
}

static void report(const char *name, struct times t) {
    if (rank == 0)
        printf("  %-11s total %8.1f ms   compute %8.1f ms   in MPI %8.1f ms\n", name, t.total, t.compute, t.wait);
}

int main(int argc, char **argv) {
    struct plate plate;
    start(&argc, &argv);
    int stages = argc > 1 ? atoi(argv[1]) : 24, side = argc > 2 ? atoi(argv[2]) : 1024;
    CHECK(stages > 0 && side > 2 * DEPTH);
    make_plate(&plate, side);
    if (rank == 0) printf("heat: %d ranks, %d stages, %d x %d cells per rank\n", size, stages, side, side);
    struct times blocking = mean_ms(solve(&plate, stages, 0));
    double expected = temperature(&plate);
    struct times overlapped = mean_ms(solve(&plate, stages, 1));
    CHECK(temperature(&plate) == expected);
    report("blocking", blocking);
    report("overlapped", overlapped);
    if (rank == 0) {
        double hidden = blocking.wait - overlapped.wait;
        double share = blocking.wait > 0 ? 100 * hidden / blocking.wait : 0;
        printf("  communication hidden by overlap: %.1f of %.1f ms per rank (%.0f%%)\n",
               hidden > 0 ? hidden : 0, blocking.wait, share > 0 ? share : 0);
    }
    MPI_Type_free(&plate.column);
    MPI_Comm_free(&plate.grid);
    free(plate.now);
    free(plate.next);
    return finish();
}
