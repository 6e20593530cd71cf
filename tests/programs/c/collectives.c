// Every data-moving collective against values computed without communication, for counts
// from nothing to more than any eager limit and for every root.
//# ranks: 1 2 3 4 8
//# abi: mpich, mpi5, mpi5-wheel, openmpi
//# progress: steal, none, thread, signal
#include "check.h"
static int *out, *in;

/* The value that rank `who` contributes at place `i`. */
static int value(int who, int i) { return who * 10007 + i; }

static void fill(int count) {
    for (int i = 0; i < count; i++) out[i] = value(rank, i);
    memset(in, 0xff, sizeof(int) * (size_t)count);
}

static void rooted(int count, int root) {
    fill(count);
    for (int i = 0; i < count; i++) in[i] = rank == root ? value(root, i) : -1;
    MPI_Bcast(in, count, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) CHECK_EQ(in[i], value(root, i));

    MPI_Gather(out, count, MPI_INT, in, count, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; rank == root && i < count * size; i++)
        CHECK_EQ(in[i], value(i / count, i % count));

    for (int i = 0; i < count * size; i++) out[i] = value(root, i);
    MPI_Scatter(out, count, MPI_INT, in, count, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) CHECK_EQ(in[i], value(root, rank * count + i));
}

static void symmetric(int count) {
    fill(count);
    MPI_Allgather(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < count * size; i++) CHECK_EQ(in[i], value(i / count, i % count));

    for (int i = 0; i < count * size; i++) out[i] = value(rank, i);
    MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < count * size; i++)
        CHECK_EQ(in[i], value(i / count, rank * count + i % count));

    for (int i = 0; i < count; i++) in[rank * count + i] = value(rank, i);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < count * size; i++) CHECK_EQ(in[i], value(i / count, i % count));
}

/* Rank r contributes r + 1 blocks with holes between the ranks' places. */
static void uneven(int root) {
    int *counts = malloc(sizeof(int) * size), *places = malloc(sizeof(int) * size);
    int mine = rank + 1, total = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = r + 1;
        places[r] = total + 1;
        total += counts[r] + 1;
    }
    fill(total + 1);
    MPI_Allgatherv(out, mine, MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++) CHECK_EQ(in[places[r] + i], value(r, i));
    CHECK_EQ(in[0], -1);

    memset(in, 0xff, sizeof(int) * (total + 1));
    MPI_Gatherv(out, mine, MPI_INT, in, counts, places, MPI_INT, root, MPI_COMM_WORLD);
    for (int r = 0; rank == root && r < size; r++)
        for (int i = 0; i < counts[r]; i++) CHECK_EQ(in[places[r] + i], value(r, i));

    for (int i = 0; i <= total; i++) out[i] = value(root, i);
    MPI_Scatterv(out, counts, places, MPI_INT, in, mine, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < mine; i++) CHECK_EQ(in[i], value(root, places[rank] + i));

    int *same = malloc(sizeof(int) * size), *even = malloc(sizeof(int) * size);
    for (int r = 0; r < size; r++) {
        same[r] = mine;
        even[r] = r * mine;
    }
    fill(size * mine);
    MPI_Alltoallv(out, same, even, MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++) CHECK_EQ(in[places[r] + i], value(r, rank * (r + 1) + i));
    free(counts);
    free(places);
    free(same);
    free(even);
}

int main(int argc, char **argv) {
    static const int counts[] = {1, 7, 1000, 40000};
    start(&argc, &argv);
    out = malloc(sizeof(int) * 40000 * size);
    in = malloc(sizeof(int) * 40000 * size);
    for (int i = 0; i < 4; i++) {
        for (int root = 0; root < size; root++) rooted(counts[i], root);
        symmetric(counts[i]);
    }
    for (int root = 0; root < size; root++) uneven(root);
    free(out);
    free(in);
    return finish();
}
