// A simulation whose results are analysed while it runs ("in situ"): rank 0 simulates and sends the field of each
// step, rank 1 analyses it. The code is what one writes first: a plain MPI_Send, and an MPI_Irecv for the next field
// before the analysis of this one.
//
//     mpicc -O2 -o insitu examples/insitu.c && pip-exec -n 2 ./insitu [steps] [passes of a light step]
//
// Both ranks have the same amount of work, but not in each step: every other step is heavy (six times the passes), as
// with a mesh that is refined now and then, or pictures of every other step. A field is 1 MiB, a long message: MPI
// copies it only when the receive is there and somebody looks. The receive is there. Who looks?
//
//  * Most MPIs: rank 1, in its next MPI call, which is after its analysis. Until then rank 0 waits in MPI_Send. So
//    each step takes as long as the slower of the two, and that is a heavy one, sometimes of one rank, sometimes of
//    the other: 6 + 6 of two steps.
//  * Cohort: rank 0 itself, since it waits. It finds the receive of rank 1, which computes, and delivers its own
//    message. It is a step ahead then, and heavy steps of one rank meet heavy steps of the other: 6 + 1 of two
//    steps. The most that there is to gain is 12/7, about 1.7.
//
// What is gained is the time that a rank would wait although its partner has made room for the message. Nothing is to
// gain when all steps are alike, or when both ranks share one CPU. A program with nonblocking sends from several
// buffers gains less: it does by hand what happens here by itself.
//
// The result is compared with what rank 1 gets alone, without messages.
//# ranks: 2
//# args: 4 1
//# stdout: 0 of them with a wrong result
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 256, COLUMNS = 512, CELLS = ROWS * COLUMNS, HEAVY = 6, BUFFERS = 2 };

struct summary { double mean, highest; long hot; };

// What a rank did with its time, in seconds.
struct times { double work, in_mpi, no_cpu; };

static int light = 8; // passes of a light step

static int passes(int step) { return step % 2 == 0 ? HEAVY * light : light; }

static double *new_field(void) {
    double *field = calloc(CELLS, sizeof(double));
    if (!field) MPI_Abort(MPI_COMM_WORLD, 1);
    return field;
}

// Heat spreads, `count` times. Both ranks compute with this, so that their passes take equally long.
static void spread(double *field, double *scratch, int count) {
    for (int pass = 0; pass < count; pass++) {
        memcpy(scratch, field, CELLS * sizeof(double));
        for (int row = 1; row < ROWS - 1; row++) {
            const double *from = &scratch[row * COLUMNS];
            double *to = &field[row * COLUMNS];
            for (int col = 1; col < COLUMNS - 1; col++)
                to[col] = 0.5 * from[col]
                    + 0.125 * (from[col - 1] + from[col + 1] + from[col - COLUMNS] + from[col + COLUMNS]);
        }
    }
}

static void simulate(double *field, double *scratch, int step) {
    int row = 1 + step * 37 % (ROWS - 2), col = 1 + step * 101 % (COLUMNS - 2);
    field[row * COLUMNS + col] += 1000;
    spread(field, scratch, passes(step));
}

// Blurs the field and then looks how much of it is hot. The field is the analysis's own to change.
static struct summary analyse(double *field, double *scratch, int step) {
    struct summary found = {0, 0, 0};
    spread(field, scratch, passes(step));
    for (int cell = 0; cell < CELLS; cell++) {
        found.mean += field[cell] / CELLS;
        if (field[cell] > found.highest) found.highest = field[cell];
        found.hot += field[cell] > 0.01;
    }
    return found;
}

// Seconds that this process wanted to run and no CPU was free, by the kernel's count; 0 if the kernel does not count.
static double waited_for_cpu(void) {
    unsigned long long ran, waited = 0;
    FILE *file = fopen("/proc/self/schedstat", "r");
    if (!file) return 0;
    if (fscanf(file, "%llu %llu", &ran, &waited) != 2) waited = 0;
    fclose(file);
    return waited * 1e-9;
}

static double produce(int steps) {
    double *field = new_field(), *scratch = new_field(), work = 0;
    for (int step = 0; step < steps; step++) {
        double begin = MPI_Wtime();
        simulate(field, scratch, step);
        work += MPI_Wtime() - begin;
        MPI_Send(field, CELLS, MPI_DOUBLE, 1, step, MPI_COMM_WORLD);
    }
    free(field);
    free(scratch);
    return work;
}

static double consume(int steps, struct summary *found) {
    double *fields[BUFFERS] = {new_field(), new_field()}, *scratch = new_field(), work = 0;
    MPI_Request requests[BUFFERS];
    MPI_Irecv(fields[0], CELLS, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, &requests[0]);
    for (int step = 0; step < steps; step++) {
        int this = step % BUFFERS, next = (step + 1) % BUFFERS;
        MPI_Wait(&requests[this], MPI_STATUS_IGNORE);
        if (step + 1 < steps)
            MPI_Irecv(fields[next], CELLS, MPI_DOUBLE, 0, step + 1, MPI_COMM_WORLD, &requests[next]);
        double begin = MPI_Wtime();
        found[step] = analyse(fields[this], scratch, step);
        work += MPI_Wtime() - begin;
    }
    for (int buffer = 0; buffer < BUFFERS; buffer++) free(fields[buffer]);
    free(scratch);
    return work;
}

// Simulates and analyses all steps on this rank, and counts those with another result.
static int count_wrong(int steps, const struct summary *found) {
    double *field = new_field(), *copy = new_field(), *scratch = new_field();
    int wrong = 0;
    for (int step = 0; step < steps; step++) {
        simulate(field, scratch, step);
        memcpy(copy, field, CELLS * sizeof(double));
        struct summary here = analyse(copy, scratch, step);
        wrong += here.mean != found[step].mean || here.highest != found[step].highest || here.hot != found[step].hot;
    }
    free(field);
    free(copy);
    free(scratch);
    return wrong;
}

int main(int argc, char **argv) {
    int rank, size, wrong = 0, steps = argc > 1 ? atoi(argv[1]) : 60;
    if (argc > 2) light = atoi(argv[2]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2 || steps < 1 || light < 1) {
        if (rank == 0) fprintf(stderr, "usage: pip-exec -n 2 insitu [steps] [passes of a light step]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    struct summary *found = calloc(steps, sizeof *found);
    if (!found) MPI_Abort(MPI_COMM_WORLD, 1);
    struct times mine, all[2];

    MPI_Barrier(MPI_COMM_WORLD);
    double no_cpu = waited_for_cpu(), begin = MPI_Wtime();
    mine.work = rank == 0 ? produce(steps) : consume(steps, found);
    MPI_Barrier(MPI_COMM_WORLD);
    double total = MPI_Wtime() - begin;
    mine.in_mpi = total - mine.work;
    mine.no_cpu = waited_for_cpu() - no_cpu;

    if (rank == 1) wrong = count_wrong(steps, found);
    MPI_Bcast(&wrong, 1, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Gather(&mine, 3, MPI_DOUBLE, all, 3, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("total %.1f ms, %d steps of %zu KiB, %d of them with a wrong result\n", total * 1e3, steps,
               CELLS * sizeof(double) / 1024, wrong);
        for (int other = 0; other < 2; other++)
            printf("rank %d worked %.1f ms, was in MPI %.1f ms, had no CPU for %.1f ms\n", other,
                   all[other].work * 1e3, all[other].in_mpi * 1e3, all[other].no_cpu * 1e3);
    }
    free(found);
    MPI_Finalize();
    return wrong ? 1 : 0;
}
