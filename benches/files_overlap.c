/* How much of reading and writing files a computation hides: files_overlap FOLDER [TRIES].
 *
 * Each line has a form, the length of its pieces in the file, and the medians of: the operation alone and then waited
 * for, the computation alone, and both at once, in milliseconds, and the share that was hidden:
 * (operation + computation - both) / the shorter of the two. Of several ranks the first has the data and computes; the
 * others have none, and wait at once. The computation is as long as the operation. One CPU has to be idle. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LENGTH = 64 << 20, TRIES_MAX = 101 };

static int rank, size;
static char *buffer;
static volatile double sink;

/* Work, not time: it takes longer where somebody else takes the CPU. */
static void compute(long steps) {
    double sum = 0;
    for (long step = 1; step <= steps; step++) sum += 1.0 / (double)step;
    sink = sum;
}

static double steps_per_second(void) {
    const long steps = 20000000;
    double best = 1e9;
    for (int try = 0; try < 3; try++) {
        double begin = MPI_Wtime();
        compute(steps);
        double took = MPI_Wtime() - begin;
        best = took < best ? took : best;
    }
    return (double)steps / best;
}

typedef struct {
    const char *name;
    int all, reads;
    int piece;
} Form;

static const Form forms[] = {
    {"iwrite_at", 0, 0, 0},        {"iread_at", 0, 1, 0},         {"iwrite_all", 1, 0, 64},
    {"iwrite_all", 1, 0, 1 << 20}, {"iread_all", 1, 1, 64},       {"iread_all", 1, 1, 1 << 20},
};

static double once(MPI_File file, const Form *form, long steps) {
    MPI_Request request;
    MPI_Offset at = form->piece ? 0 : (MPI_Offset)rank * LENGTH;
    int length = rank == 0 ? LENGTH : 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    if (form->all && form->reads) MPI_File_iread_at_all(file, at, buffer, length, MPI_CHAR, &request);
    if (form->all && !form->reads) MPI_File_iwrite_at_all(file, at, buffer, length, MPI_CHAR, &request);
    if (!form->all && form->reads) MPI_File_iread_at(file, at, buffer, length, MPI_CHAR, &request);
    if (!form->all && !form->reads) MPI_File_iwrite_at(file, at, buffer, length, MPI_CHAR, &request);
    if (rank == 0) compute(steps);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return MPI_Wtime() - begin;
}

static int order(const void *left, const void *right) {
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

static double median(double *values, int count) {
    qsort(values, count, sizeof *values, order);
    return values[count / 2];
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int tries = argc > 2 ? atoi(argv[2]) : 7;
    if (argc < 2 || tries < 1 || tries > TRIES_MAX) {
        if (rank == 0) fprintf(stderr, "usage: %s FOLDER [TRIES, at most %d]\n", argv[0], TRIES_MAX);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    double rate = rank == 0 ? steps_per_second() : 0;
    buffer = malloc(LENGTH);
    memset(buffer, rank + 1, LENGTH);
    char name[4096];
    snprintf(name, sizeof name, "%s/files-overlap-%d", argv[1], size);
    for (unsigned which = 0; which < sizeof forms / sizeof *forms; which++) {
        const Form *form = &forms[which];
        MPI_File file;
        int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
        if (MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file)) MPI_Abort(MPI_COMM_WORLD, 1);
        MPI_Datatype view = MPI_CHAR;
        if (form->piece) {
            MPI_Type_vector(1, form->piece, form->piece, MPI_CHAR, &view);
            MPI_Datatype block = view;
            MPI_Type_create_resized(block, 0, (MPI_Aint)form->piece * size, &view);
            MPI_Type_free(&block);
            MPI_Type_commit(&view);
            MPI_File_set_view(file, (MPI_Offset)form->piece * rank, MPI_CHAR, view, "native", MPI_INFO_NULL);
        }
        double alone[TRIES_MAX], computing[TRIES_MAX], both[TRIES_MAX], shares[TRIES_MAX];
        once(file, form, 0);
        for (int try = 0; try < tries; try++) {
            alone[try] = once(file, form, 0);
            long steps = (long)(alone[try] * rate);
            double begin = MPI_Wtime();
            if (rank == 0) compute(steps);
            computing[try] = MPI_Wtime() - begin;
            both[try] = once(file, form, steps);
            double shorter = alone[try] < computing[try] ? alone[try] : computing[try];
            shares[try] = (alone[try] + computing[try] - both[try]) / shorter;
        }
        if (rank == 0)
            printf("%s\t%d\t%.1f\t%.1f\t%.1f\t%.0f %%\n", form->name, form->piece, 1e3 * median(alone, tries),
                   1e3 * median(computing, tries), 1e3 * median(both, tries), 100 * median(shares, tries));
        if (form->piece) MPI_Type_free(&view);
        MPI_File_close(&file);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) unlink(name);
    MPI_Finalize();
    return 0;
}
