// Fourier transforms of pictures in two dimensions: of all rows, then, after a transposition, of all columns. For the
// transposition each rank sends a block to each other one (MPI_Ialltoallv); while one picture travels, rows of the
// next one are transformed.
//
//     mpicc -O2 -o transpose examples/transpose.c -lm && pip-exec -n 4 ./transpose [balanced|imbalanced] [pictures]
//
// Imbalanced: odd ranks have three times the rows of even ones. Each picture is one wave, whose transform is one point.
//# ranks: 1 3
//# progress: steal, none
//# args: imbalanced 4
//# stdout: right
#include <complex.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 512 };
typedef double complex number;

struct picture {
    number *rows, *packed, *arrived;
    MPI_Request request;
};

static int rank, size, *first; // rows of rank r: first[r] to first[r + 1]
static number roots[SIDE];

static int rows_of(int who) { return first[who + 1] - first[who]; }

// The transform of one row, in place (Cooley and Tukey).
static void transform_row(number *row) {
    for (int i = 1, j = 0; i < SIDE; i++) {
        int bit = SIDE / 2;
        for (; j & bit; bit /= 2) j ^= bit;
        j ^= bit;
        if (i < j) {
            number other = row[i];
            row[i] = row[j];
            row[j] = other;
        }
    }
    for (int half = 1; half < SIDE; half *= 2)
        for (int begin = 0; begin < SIDE; begin += 2 * half)
            for (int k = 0; k < half; k++) {
                number low = row[begin + k], high = row[begin + half + k] * roots[k * (SIDE / 2 / half)];
                row[begin + k] = low + high;
                row[begin + half + k] = low - high;
            }
}

static void transform_rows(struct picture *p) {
    for (int row = 0; row < rows_of(rank); row++) transform_row(&p->rows[(size_t)row * SIDE]);
}

// Wave number `wave` in both directions.
static void draw(struct picture *p, int wave) {
    for (int row = 0; row < rows_of(rank); row++)
        for (int col = 0; col < SIDE; col++)
            p->rows[(size_t)row * SIDE + col] = conj(roots[(first[rank] + row + col) * wave % SIDE]);
}

// Packs what each rank gets, transposed, and sends it.
static void send_off(struct picture *p) {
    int counts[size], displacements[size], sources[size], places[size];
    number *to = p->packed;
    for (int other = 0; other < size; other++) {
        displacements[other] = 2 * (to - p->packed);
        for (int col = first[other]; col < first[other + 1]; col++)
            for (int row = 0; row < rows_of(rank); row++) *to++ = p->rows[(size_t)row * SIDE + col];
        counts[other] = sources[other] = 2 * rows_of(rank) * rows_of(other);
        places[other] = 2 * first[other] * rows_of(rank);
    }
    MPI_Ialltoallv(p->packed, counts, displacements, MPI_DOUBLE, p->arrived, sources, places, MPI_DOUBLE,
                   MPI_COMM_WORLD, &p->request);
}

// Waits for the blocks of all ranks and puts them into rows.
static void receive(struct picture *p) {
    MPI_Wait(&p->request, MPI_STATUS_IGNORE);
    for (int other = 0; other < size; other++) {
        const number *from = &p->arrived[(size_t)first[other] * rows_of(rank)];
        for (int row = 0; row < rows_of(rank); row++, from += rows_of(other))
            memcpy(&p->rows[(size_t)row * SIDE + first[other]], from, rows_of(other) * sizeof(number));
    }
}

// How many numbers are not those of one point at (wave, wave).
static int count_wrong(const struct picture *p, int wave) {
    int wrong = 0;
    for (int row = 0; row < rows_of(rank); row++)
        for (int col = 0; col < SIDE; col++) {
            int is_point = first[rank] + row == wave && col == wave;
            wrong += cabs(p->rows[(size_t)row * SIDE + col] - (is_point ? SIDE * SIDE : 0)) > 1e-6;
        }
    return wrong;
}

static void finish(struct picture *p, int wave, int *wrong) {
    receive(p);
    transform_rows(p);
    *wrong += count_wrong(p, wave);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int weight = argc > 1 && strcmp(argv[1], "imbalanced") == 0 ? 3 : 1, pictures = argc > 2 ? atoi(argv[2]) : 30;
    int parts = size / 2 * weight + (size + 1) / 2, before = 0, wrong = 0, all_wrong;
    first = calloc(size + 1, sizeof *first);
    for (int other = 0; other < size; other++) {
        before += other % 2 ? weight : 1;
        first[other + 1] = SIDE * before / parts;
    }
    for (int k = 0; k < SIDE; k++) roots[k] = cexp(-2 * M_PI * I * k / SIDE);
    struct picture two[2];
    size_t cells = (size_t)rows_of(rank) * SIDE;
    for (int k = 0; k < 2; k++)
        two[k] = (struct picture){calloc(cells, sizeof(number)), calloc(cells, sizeof(number)),
                                  calloc(cells, sizeof(number)), MPI_REQUEST_NULL};

    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int wave = 0; wave < pictures; wave++) {
        struct picture *this = &two[wave % 2];
        draw(this, wave);
        transform_rows(this);
        send_off(this);
        if (wave > 0) finish(&two[(wave - 1) % 2], wave - 1, &wrong);
    }
    finish(&two[(pictures - 1) % 2], pictures - 1, &wrong);
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - begin;

    if (rank == 0) printf("transpose: %.4f s, %s\n", seconds, all_wrong ? "WRONG" : "right");
    for (int k = 0; k < 2; k++) {
        free(two[k].rows);
        free(two[k].packed);
        free(two[k].arrived);
    }
    free(first);
    MPI_Finalize();
    return all_wrong != 0;
}
