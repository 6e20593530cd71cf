// Reduce, Allreduce, Scan, Exscan and Reduce_scatter(_block) with predefined operations on
// several types, MPI_IN_PLACE included.
//# ranks: 1 2 3 4 8
//# abi: mpich, mpi5, openmpi
//# progress: steal, none, thread
#include "check.h"
static long *out, *in;

static long value(int who, int i) { return who + 1 + i % 13; }

/* Sum over the ranks 0 to `last` of their value at place `i`. */
static long sum_to(int last, int i) {
    long sum = 0;
    for (int r = 0; r <= last; r++) sum += value(r, i);
    return sum;
}

static void sums(int count) {
    int root = size - 1;
    for (int i = 0; i < count; i++) out[i] = value(rank, i);
    MPI_Reduce(out, in, count, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD);
    for (int i = 0; rank == root && i < count; i++) CHECK_EQ(in[i], sum_to(size - 1, i));
    MPI_Allreduce(out, in, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) CHECK_EQ(in[i], sum_to(size - 1, i));
    memcpy(in, out, sizeof(long) * count);
    MPI_Allreduce(MPI_IN_PLACE, in, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) CHECK_EQ(in[i], sum_to(size - 1, i));
    MPI_Scan(out, in, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) CHECK_EQ(in[i], sum_to(rank, i));
    MPI_Exscan(out, in, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; rank > 0 && i < count; i++) CHECK_EQ(in[i], sum_to(rank - 1, i));
}

static void scattered(int count) {
    int *counts = malloc(sizeof(int) * size), before = 0, total = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = count + r;
        if (r < rank) before += counts[r];
        total += counts[r];
    }
    for (int i = 0; i < total; i++) out[i] = value(rank, i);
    MPI_Reduce_scatter(out, in, counts, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < counts[rank]; i++) CHECK_EQ(in[i], sum_to(size - 1, before + i));
    MPI_Reduce_scatter_block(out, in, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) CHECK_EQ(in[i], sum_to(size - 1, rank * count + i));
    free(counts);
}

static void operations(void) {
    int mine[3] = {rank, -rank, rank + 1}, all[3];
    MPI_Allreduce(mine, all, 3, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(all[0] == size - 1 && all[1] == 0 && all[2] == size);
    MPI_Allreduce(mine, all, 3, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    CHECK(all[0] == 0 && all[1] == 1 - size && all[2] == 1);
    MPI_Allreduce(mine, all, 1, MPI_INT, MPI_BXOR, MPI_COMM_WORLD);
    int parity = 0;
    for (int r = 0; r < size; r++) parity ^= r;
    CHECK_EQ(all[0], parity);
    MPI_Allreduce(mine, all, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    CHECK_EQ(all[0], size > 1);
    unsigned char bits = (unsigned char)~(1u << rank), common;
    MPI_Allreduce(&bits, &common, 1, MPI_UNSIGNED_CHAR, MPI_BAND, MPI_COMM_WORLD);
    CHECK_EQ(common, (unsigned char)~((1u << size) - 1));
    double third = 1.0 / (rank + 1), product, expected = 1;
    MPI_Allreduce(&third, &product, 1, MPI_DOUBLE, MPI_PROD, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++) expected *= 1.0 / (r + 1);
    CHECK(product / expected > 0.999999 && product / expected < 1.000001);
    struct {
        double value;
        int where;
    } near = {rank == size / 2 ? -1.5 : rank, rank}, found;
    MPI_Allreduce(&near, &found, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
    CHECK(found.value == -1.5 && found.where == size / 2);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    out = malloc(sizeof(long) * (20000 + size) * size);
    in = malloc(sizeof(long) * (20000 + size) * size);
    sums(1);
    sums(100);
    sums(20000);
    scattered(1);
    scattered(20000);
    operations();
    free(out);
    free(in);
    return finish();
}
