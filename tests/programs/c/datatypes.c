// Vector, indexed, struct, subarray and resized types carry exactly their bytes, between
// different layouts on both sides, in small and in rendezvous size.
//# ranks: 2
//# abi: mpich, mpi5, openmpi
//# progress: steal, none
#include "check.h"
enum { SIDE = 700 };
static int from[SIDE][SIDE], to[SIDE][SIDE];

/* Rank 0 sends one `type` of `from`; rank 1 receives it contiguously as `count` ints. */
static const int *exchange(MPI_Datatype type, int count) {
    static int flat[SIDE * SIDE];
    MPI_Type_commit(&type);
    int bytes;
    MPI_Type_size(type, &bytes);
    CHECK_EQ(bytes, count * (int)sizeof(int));
    if (rank == 0) MPI_Send(from, 1, type, 1, 5, MPI_COMM_WORLD);
    memset(flat, 0xff, sizeof flat);
    if (rank == 1) MPI_Recv(flat, count, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
    CHECK(type == MPI_DATATYPE_NULL);
    return rank == 1 ? flat : NULL;
}

static void columns(void) {
    MPI_Datatype type;
    MPI_Type_vector(SIDE, 3, SIDE, MPI_INT, &type);
    const int *flat = exchange(type, SIDE * 3);
    for (int i = 0; flat && i < SIDE * 3; i++) CHECK_EQ(flat[i], from[i / 3][i % 3]);
}

static void blocks(void) {
    int lengths[3] = {2, 0, 5}, places[3] = {100, 3, 7};
    MPI_Datatype type;
    MPI_Type_indexed(3, lengths, places, MPI_INT, &type);
    const int *flat = exchange(type, 7);
    for (int i = 0; flat && i < 7; i++) CHECK_EQ(flat[i], (&from[0][0])[i < 2 ? 100 + i : 5 + i]);
}

static void inner_square(void) {
    int sizes[2] = {SIDE, SIDE}, part[2] = {SIDE - 10, SIDE - 20}, first[2] = {4, 6};
    MPI_Datatype type;
    MPI_Type_create_subarray(2, sizes, part, first, MPI_ORDER_C, MPI_INT, &type);
    const int *flat = exchange(type, part[0] * part[1]);
    for (int i = 0; flat && i < part[0] * part[1]; i++)
        CHECK_EQ(flat[i], from[4 + i / part[1]][6 + i % part[1]]);
}

/* A column resized to one int: many of them in a row make a transposition. */
static void transposed(void) {
    MPI_Datatype column, narrow;
    MPI_Type_vector(SIDE, 1, SIDE, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, sizeof(int), &narrow);
    MPI_Type_commit(&narrow);
    memset(to, 0, sizeof to);
    if (rank == 0) MPI_Send(from, SIDE * SIDE, MPI_INT, 1, 6, MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Recv(to, SIDE, narrow, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < SIDE * SIDE; i++) CHECK_EQ(to[i % SIDE][i / SIDE], from[i / SIDE][i % SIDE]);
    }
    MPI_Type_free(&column);
    MPI_Type_free(&narrow);
}

struct record {
    char letter;
    double value;
    short pair[2];
};

static void records(void) {
    struct record out[100] = {0}, in[100];
    int lengths[3] = {1, 1, 2};
    MPI_Aint places[3], base, low, extent;
    MPI_Datatype kinds[3] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT}, loose, type;
    MPI_Get_address(&out[0], &base);
    MPI_Get_address(&out[0].letter, &places[0]);
    MPI_Get_address(&out[0].value, &places[1]);
    MPI_Get_address(&out[0].pair, &places[2]);
    for (int i = 0; i < 3; i++) places[i] = MPI_Aint_diff(places[i], base);
    MPI_Type_create_struct(3, lengths, places, kinds, &loose);
    MPI_Type_create_resized(loose, 0, sizeof(struct record), &type);
    MPI_Type_commit(&type);
    MPI_Type_get_extent(type, &low, &extent);
    CHECK_EQ(extent, sizeof(struct record));
    memset(in, 0x7e, sizeof in);
    for (int i = 0; i < 100; i++)
        out[i] = (struct record){(char)i, i * 0.5, {(short)i, (short)-i}};
    MPI_Sendrecv(out, 100, type, 1 - rank, 8, in, 100, type, 1 - rank, 8, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < 100; i++) {
        CHECK(in[i].letter == (char)i && in[i].value == i * 0.5);
        CHECK(in[i].pair[0] == i && in[i].pair[1] == -i);
        CHECK_EQ(((char *)&in[i])[1], 0x7e); /* padding stays */
    }
    MPI_Type_free(&loose);
    MPI_Type_free(&type);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    for (int i = 0; i < SIDE * SIDE; i++) from[i / SIDE][i % SIDE] = i * 7 + 1;
    columns();
    blocks();
    inner_square();
    transposed();
    records();
    return finish();
}
