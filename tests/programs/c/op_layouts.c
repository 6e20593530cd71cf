// Operations of the program on elements of one type whose members have made it with other places: each call says so at
// all members, where it would read wrong data. Types of the same places are one, however they were made.
//# ranks: 2 3
//# nodes: no
// Between nodes elements are packed.
#include "check.h"
enum { COUNT = 20000, GAP = 3 };
static int in[COUNT * 4], out[COUNT * 4];

// The sum of the first and of the last number of each element.
static void add(void *from, void *to, int *count, MPI_Datatype *type) {
    MPI_Aint lb, extent, true_lb, true_extent;
    MPI_Type_get_extent(*type, &lb, &extent);
    MPI_Type_get_true_extent(*type, &true_lb, &true_extent);
    for (int i = 0; i < *count; i++)
        for (MPI_Aint at = 0; at < true_extent; at += true_extent - (MPI_Aint)sizeof(int))
            *(int *)((char *)to + i * extent + at) += *(int *)((char *)from + i * extent + at);
}

// Two numbers so far apart, in elements of the same length.
static MPI_Datatype pair(int apart, int is_vector) {
    MPI_Datatype made, type;
    int lengths[] = {1, 1}, places[] = {0, apart};
    if (is_vector) MPI_Type_vector(2, 1, apart, MPI_INT, &made);
    else MPI_Type_indexed(2, lengths, places, MPI_INT, &made);
    MPI_Type_create_resized(made, 0, 4 * sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&made);
    return type;
}

static void fill(int apart) {
    for (int i = 0; i < COUNT; i++) {
        in[4 * i] = i + rank;
        in[4 * i + apart] = i * rank;
    }
}

static void check_sums(void) {
    int ranks = size * (size - 1) / 2;
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQ(out[4 * i], i * size + ranks);
        CHECK_EQ(out[4 * i + GAP], i * ranks);
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Op op;
    MPI_Op_create(add, 1, &op);
    MPI_Request request;
    MPI_Datatype alike = pair(GAP, rank % 2);
    fill(GAP);
    CHECK_EQ(MPI_Allreduce(in, out, COUNT, alike, op, MPI_COMM_WORLD), MPI_SUCCESS);
    check_sums();
    memset(out, 0, sizeof out);
    CHECK_EQ(MPI_Iallreduce(in, out, COUNT, alike, op, MPI_COMM_WORLD, &request), MPI_SUCCESS);
    CHECK_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    check_sums();
    int apart = rank == 1 ? GAP - 1 : GAP;
    MPI_Datatype other = pair(apart, 1);
    fill(apart);
    CHECK_EQ(class_of(MPI_Allreduce(in, out, COUNT, other, op, MPI_COMM_WORLD)), MPI_ERR_NOT_SAME);
    CHECK_EQ(class_of(MPI_Reduce(in, out, COUNT, other, op, 0, MPI_COMM_WORLD)), MPI_ERR_NOT_SAME);
    CHECK_EQ(class_of(MPI_Scan(in, out, COUNT, other, op, MPI_COMM_WORLD)), MPI_ERR_NOT_SAME);
    CHECK_EQ(MPI_Iallreduce(in, out, COUNT, other, op, MPI_COMM_WORLD, &request), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)), MPI_ERR_NOT_SAME);
    // What all agree on goes on.
    fill(GAP);
    CHECK_EQ(MPI_Allreduce(in, out, COUNT, alike, op, MPI_COMM_WORLD), MPI_SUCCESS);
    check_sums();
    MPI_Type_free(&alike);
    MPI_Type_free(&other);
    MPI_Op_free(&op);
    return finish();
}
