/* What it takes to start processes while a job runs, in microseconds; run on one rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 10, TRIPS = 2000 };

static int by_value(const void *one, const void *two) {
    double a = *(const double *)one, b = *(const double *)two;
    return (a > b) - (a < b);
}

static double median(double *values, int count) {
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

/* Half of a round trip of 8 bytes with the other one. */
static double trip(MPI_Comm comm, int other, int begins) {
    static double times[TRIPS];
    long word = 0;
    for (int turn = 0; turn < TRIPS; turn++) {
        double start = MPI_Wtime();
        if (begins) MPI_Send(&word, 1, MPI_LONG, other, 1, comm);
        MPI_Recv(&word, 1, MPI_LONG, other, 1, comm, MPI_STATUS_IGNORE);
        if (!begins) MPI_Send(&word, 1, MPI_LONG, other, 1, comm);
        times[turn] = (MPI_Wtime() - start) / 2 * 1e6;
    }
    return median(times, TRIPS);
}

static MPI_Comm spawn(char *program, char *what, int count) {
    char *arguments[] = {what, NULL};
    MPI_Comm children;
    MPI_Comm_spawn(program, arguments, count, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE);
    return children;
}

static void meet(MPI_Comm others, int is_child) {
    MPI_Comm all;
    MPI_Intercomm_merge(others, is_child, &all);
    MPI_Barrier(all);
    MPI_Comm_free(&all);
}

static void parent(char *program) {
    double times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double start = MPI_Wtime();
        MPI_Comm child = spawn(program, "message", 1);
        int got;
        MPI_Recv(&got, 1, MPI_INT, 0, 0, child, MPI_STATUS_IGNORE);
        MPI_Comm_disconnect(&child);
        times[round] = (MPI_Wtime() - start) * 1e6;
    }
    printf("one child, a message, disconnect %f\n", median(times, ROUNDS));
    for (int round = 0; round < ROUNDS; round++) {
        double start = MPI_Wtime();
        MPI_Comm children = spawn(program, "meet", 4);
        meet(children, 0);
        MPI_Comm_disconnect(&children);
        times[round] = (MPI_Wtime() - start) * 1e6;
    }
    printf("four children, merge, barrier, disconnect %f\n", median(times, ROUNDS));
    MPI_Comm children = spawn(program, "trip", 2);
    printf("8 B between parent and child %f\n", trip(children, 0, 1));
    double among;
    MPI_Recv(&among, 1, MPI_DOUBLE, 0, 2, children, MPI_STATUS_IGNORE);
    printf("8 B between two children %f\n", among);
    MPI_Comm_disconnect(&children);
}

static void child(MPI_Comm parent, const char *what) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(what, "message") == 0) MPI_Send(&rank, 1, MPI_INT, 0, 0, parent);
    if (strcmp(what, "meet") == 0) meet(parent, 1);
    if (strcmp(what, "trip") == 0) {
        if (rank == 0) trip(parent, 0, 0);
        MPI_Barrier(MPI_COMM_WORLD);
        double among = trip(MPI_COMM_WORLD, 1 - rank, rank == 0);
        if (rank == 0) MPI_Send(&among, 1, MPI_DOUBLE, 0, 2, parent);
    }
    MPI_Comm_disconnect(&parent);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm from;
    MPI_Comm_get_parent(&from);
    if (from == MPI_COMM_NULL) parent(argv[0]);
    else child(from, argv[1]);
    MPI_Finalize();
    return 0;
}
