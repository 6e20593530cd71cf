// A pipeline: rank 0 makes frames, each rank filters a frame and hands it on, the last one keeps it. The receive of
// the next frame is posted before this one is filtered; the send is a plain MPI_Send.
//
//     mpicc -O2 -o pipeline examples/pipeline.c && pip-exec -n 4 ./pipeline [balanced|imbalanced] [frames]
//
// Imbalanced: a rank has seven times the work for every other frame, when its neighbours have little. The last rank
// computes some frames alone and compares.
//# ranks: 1 3
//# progress: steal, none
//# args: imbalanced 20
//# stdout: right
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 32768, PASSES = 128, CHECKED = 16 }; // a frame has 256 KiB

static int rank, size, imbalanced;

static double *new_frame(void) { return calloc(CELLS, sizeof(double)); }

// Passes of the filter that a rank has for a frame: quarters of its share, 7 and 1 in turn if imbalanced.
static int passes_of(int who, int frame) {
    int share = PASSES / size;
    return imbalanced ? share * ((who + frame) % 2 ? 7 : 1) / 4 : share;
}

static void make(double *frame, int number) {
    for (int cell = 0; cell < CELLS; cell++) frame[cell] = (cell * 31 + number * 17) % 256;
}

static void filter(double *frame, int passes) {
    static double scratch[CELLS];
    for (int pass = 0; pass < passes; pass++) {
        memcpy(scratch, frame, sizeof scratch);
        for (int cell = 1; cell < CELLS - 1; cell++)
            frame[cell] = 0.25 * scratch[cell - 1] + 0.5 * scratch[cell] + 0.25 * scratch[cell + 1];
    }
}

// Whether the last rank has what one rank alone would have made.
static int is_right(const double *frame, int number) {
    int passes = 0;
    double *again = new_frame();
    for (int who = 0; who < size; who++) passes += passes_of(who, number);
    make(again, number);
    filter(again, passes);
    int same = memcmp(again, frame, CELLS * sizeof(double)) == 0;
    free(again);
    return same;
}

// All frames through this rank; the last one keeps copies of those that are compared.
static void run(int frames, double **kept) {
    double *buffers[2] = {new_frame(), new_frame()};
    MPI_Request requests[2];
    if (rank > 0) MPI_Irecv(buffers[0], CELLS, MPI_DOUBLE, rank - 1, 0, MPI_COMM_WORLD, &requests[0]);
    for (int number = 0; number < frames; number++) {
        double *frame = buffers[number % 2];
        if (rank == 0) make(frame, number);
        else MPI_Wait(&requests[number % 2], MPI_STATUS_IGNORE);
        if (rank > 0 && number + 1 < frames) {
            int next = (number + 1) % 2;
            MPI_Irecv(buffers[next], CELLS, MPI_DOUBLE, rank - 1, 0, MPI_COMM_WORLD, &requests[next]);
        }
        filter(frame, passes_of(rank, number));
        if (rank + 1 < size) MPI_Send(frame, CELLS, MPI_DOUBLE, rank + 1, 0, MPI_COMM_WORLD);
        else if (number % CHECKED == 0) memcpy(kept[number / CHECKED] = new_frame(), frame, CELLS * sizeof(double));
    }
    free(buffers[0]);
    free(buffers[1]);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    imbalanced = argc > 1 && strcmp(argv[1], "imbalanced") == 0;
    int frames = argc > 2 ? atoi(argv[2]) : 240, wrong = 0;
    double **kept = calloc(frames / CHECKED + 1, sizeof *kept);

    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    run(frames, kept);
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - begin;

    if (rank == size - 1)
        for (int number = 0; number < frames; number += CHECKED) {
            wrong += !is_right(kept[number / CHECKED], number);
            free(kept[number / CHECKED]);
        }
    MPI_Bcast(&wrong, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
    if (rank == 0) printf("pipeline: %.4f s, %s\n", seconds, wrong ? "WRONG" : "right");
    free(kept);
    MPI_Finalize();
    return wrong != 0;
}
