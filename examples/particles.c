// Particles that fly through a box, whose slices the ranks share. After each step those that have left a slice go to
// one of its two neighbours; how many come is known when the message is there (MPI_Mprobe).
//
//     mpicc -O2 -o particles examples/particles.c -lm && pip-exec -n 4 ./particles [balanced|imbalanced] [steps]
//
// Imbalanced: at first all are in the first half of the box, and they drift through it. Where a particle is does not
// depend on the others, so that each rank can compute it again for some of its particles at the end.
//# ranks: 1 3
//# progress: steal, none
//# args: imbalanced 10
//# stdout: right
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTICLES = 60000, PARTS = 6, DOUBLES = 5 };

// Place, velocity and number; `x` is in [0, 1), which is divided into slices.
struct particle { double x, y, vx, vy, number; };

struct list {
    struct particle *items;
    int count, room;
};

static int rank, size, imbalanced;

static void push(struct list *list, struct particle one) {
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 1024;
        list->items = realloc(list->items, list->room * sizeof one);
        if (!list->items) MPI_Abort(MPI_COMM_WORLD, 1);
    }
    list->items[list->count++] = one;
}

static int slice_of(double x) { return (int)(x * size); }

static struct particle born(int number) {
    double part = (number + 0.5) / PARTICLES;
    return (struct particle){imbalanced ? part / 2 : part, fmod(number * 0.618, 1), 0.01, 0.002, number};
}

// One step in a field of force, in small steps of time; a particle moves by less than the 16th part of the box.
static void move(struct particle *one) {
    for (int part = 0; part < PARTS; part++) {
        one->vx += 1e-4 * sin(6.2831853 * one->y);
        one->vy += 1e-4 * cos(6.2831853 * one->x);
        one->x += one->vx / PARTS;
        one->y += one->vy / PARTS;
    }
    one->x -= floor(one->x);
    one->y -= floor(one->y);
    one->vx = 0.01 + 0.5 * (one->vx - 0.01);
    one->vy *= 0.5;
}

// Moves all, and sorts out those that leave for the slice before and behind.
static void step(struct list *here, struct list *before, struct list *behind) {
    int stay = 0;
    for (int k = 0; k < here->count; k++) {
        struct particle one = here->items[k];
        move(&one);
        int slice = slice_of(one.x);
        if (slice == rank) here->items[stay++] = one;
        else if (slice == (rank + 1) % size) push(behind, one);
        else push(before, one);
    }
    here->count = stay;
}

static void take_in(struct list *here, int from, int tag) {
    MPI_Message message;
    MPI_Status status;
    int count;
    MPI_Mprobe(from, tag, MPI_COMM_WORLD, &message, &status);
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    struct particle *come = malloc(count * sizeof(double) + 1);
    MPI_Mrecv(come, count, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
    for (int k = 0; k < count / DOUBLES; k++) push(here, come[k]);
    free(come);
}

static void exchange(struct list *here, struct list *before, struct list *behind) {
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Request sent[2];
    MPI_Isend(before->items, before->count * DOUBLES, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &sent[0]);
    MPI_Isend(behind->items, behind->count * DOUBLES, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &sent[1]);
    take_in(here, left, 2);
    take_in(here, right, 1);
    MPI_Waitall(2, sent, MPI_STATUSES_IGNORE);
    before->count = behind->count = 0;
}

// Of every 50th particle the whole way again; and none may be lost: the sum of all numbers is known.
static int count_wrong(const struct list *here, int steps) {
    double sums[2] = {0, 0}, all[2];
    int wrong = 0;
    for (int k = 0; k < here->count; k++) {
        struct particle one = here->items[k], again = born((int)one.number);
        sums[0] += 1;
        sums[1] += one.number;
        wrong += slice_of(one.x) != rank;
        if ((int)one.number % 50) continue;
        for (int at = 0; at < steps; at++) move(&again);
        wrong += again.x != one.x || again.y != one.y || again.vx != one.vx || again.vy != one.vy;
    }
    MPI_Allreduce(sums, all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    wrong += all[0] != PARTICLES || all[1] != (double)PARTICLES * (PARTICLES - 1) / 2;
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return wrong;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    imbalanced = argc > 1 && strcmp(argv[1], "imbalanced") == 0;
    int steps = argc > 2 ? atoi(argv[2]) : 80;
    struct list here = {0}, before = {0}, behind = {0};
    for (int number = 0; number < PARTICLES; number++)
        if (slice_of(born(number).x) == rank) push(&here, born(number));

    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int at = 0; at < steps; at++) {
        step(&here, &before, &behind);
        exchange(&here, &before, &behind);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - begin;

    int wrong = count_wrong(&here, steps);
    if (rank == 0) printf("particles: %.4f s, %s\n", seconds, wrong ? "WRONG" : "right");
    free(here.items);
    free(before.items);
    free(behind.items);
    MPI_Finalize();
    return wrong != 0;
}
