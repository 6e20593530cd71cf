// A task farm: rank 0 hands out tasks and collects results, the others compute. A task is a row of a picture of the
// Mandelbrot set; with a result, a worker asks for the next task.
//
//     mpicc -O2 -o farm examples/farm.c && pip-exec -n 4 ./farm [balanced|imbalanced] [tasks]
//
// Imbalanced: rows of the picture from top to bottom, some of which take ten times as long as others. Balanced: each
// task is the row in the middle. Rank 0 computes some rows again and compares.
//# ranks: 1 3
//# progress: steal, none
//# args: imbalanced 40
//# stdout: right
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 6144, LIMIT = 200, STOP = -1, CHECKED = 32 };

static int imbalanced, tasks = 512;

// How many steps each point of a row takes until it escapes.
static void compute(int task, int *row) {
    double y = imbalanced ? 2.4 * (task + 0.5) / tasks - 1.2 : 0.5;
    for (int col = 0; col < WIDTH; col++) {
        double x = 3.0 * col / WIDTH - 2.2, re = 0, im = 0;
        int steps = 0;
        for (; steps < LIMIT && re * re + im * im < 4; steps++) {
            double next = re * re - im * im + x;
            im = 2 * re * im + y;
            re = next;
        }
        row[col] = steps;
    }
}

// Takes what a worker has computed and gives it the next task, until all have been told to stop.
static void hand_out(int *picture, int workers) {
    int next = 0, *row = malloc((WIDTH + 1) * sizeof(int));
    while (workers > 0) {
        MPI_Status status;
        int count, task = next < tasks ? next++ : STOP;
        MPI_Recv(row, WIDTH + 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        MPI_Send(&task, 1, MPI_INT, status.MPI_SOURCE, 0, MPI_COMM_WORLD);
        if (count > 0) memcpy(&picture[(size_t)row[WIDTH] * WIDTH], row, WIDTH * sizeof(int));
        if (task == STOP) workers--;
    }
    free(row);
}

// Asks with an empty message first, then with results. A result has the number of its task at its end.
static void work(void) {
    int task, *row = malloc((WIDTH + 1) * sizeof(int));
    MPI_Send(row, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);
    for (;;) {
        MPI_Recv(&task, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (task == STOP) break;
        compute(task, row);
        row[WIDTH] = task;
        MPI_Send(row, WIDTH + 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    free(row);
}

static int count_wrong(const int *picture) {
    int wrong = 0, *row = malloc(WIDTH * sizeof(int));
    for (int task = 0; task < tasks; task++) {
        if (task % CHECKED == CHECKED / 2) {
            compute(task, row);
            wrong += memcmp(row, &picture[(size_t)task * WIDTH], WIDTH * sizeof(int)) != 0;
        }
        wrong += picture[(size_t)task * WIDTH] == 0; // every point takes a step
    }
    free(row);
    return wrong;
}

int main(int argc, char **argv) {
    int rank, size, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    imbalanced = argc > 1 && strcmp(argv[1], "imbalanced") == 0;
    if (argc > 2) tasks = atoi(argv[2]);
    int *picture = rank == 0 ? calloc((size_t)tasks * WIDTH, sizeof(int)) : NULL;

    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    if (rank > 0) work();
    else if (size > 1) hand_out(picture, size - 1);
    else for (int task = 0; task < tasks; task++) compute(task, &picture[(size_t)task * WIDTH]);
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - begin;

    if (rank == 0) {
        wrong = count_wrong(picture);
        printf("farm: %.4f s, %s\n", seconds, wrong ? "WRONG" : "right");
    }
    free(picture);
    MPI_Finalize();
    return wrong != 0;
}
