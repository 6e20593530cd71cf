// A user operation that does not commute is applied in rank order, on the caller's own thread, also on a derived
// datatype, which it may ask about although its handle was freed meanwhile. The operation is the product of 2 x 2
// matrices.
// Another one sees how its elements are aligned.
//# ranks: 1 2 3 4 7
//# abi: mpich, mpi5, openmpi
//# progress: steal, none
//# libs: -lpthread
#include "check.h"
#include <pthread.h>
#include <stdint.h>
typedef struct { long long a, b, c, d; } matrix;
static pthread_t owner;
static int foreign, odd;

static matrix times(matrix x, matrix y) {
    return (matrix){(x.a * y.a + x.b * y.c) % 10007, (x.a * y.b + x.b * y.d) % 10007,
                    (x.c * y.a + x.d * y.c) % 10007, (x.c * y.b + x.d * y.d) % 10007};
}

static void multiply(void *in, void *inout, int *count, MPI_Datatype *type) {
    int bytes = 0;
    MPI_Type_size(*type, &bytes);
    if (bytes != sizeof(matrix)) odd++;
    if (!pthread_equal(owner, pthread_self())) foreign++;
    for (int i = 0; i < *count; i++) ((matrix *)inout)[i] = times(((matrix *)in)[i], ((matrix *)inout)[i]);
}

static matrix of(int who, int i) { return (matrix){who + 2, i % 5 + 1, 3, who + i % 3}; }

static matrix product(int first, int last, int i) {
    matrix result = of(first, i);
    for (int r = first + 1; r <= last; r++) result = times(result, of(r, i));
    return result;
}

static void expect(const matrix *got, int last, int count) {
    for (int i = 0; i < count; i++) {
        matrix wanted = product(0, last, i);
        CHECK(memcmp(&wanted, &got[i], sizeof wanted) == 0);
    }
}

// Elements that begin at a multiple of 16 in the program's memory do so wherever the operation meets them.
typedef struct { _Alignas(16) double unsent; double sent; } pair;
static int misplaced;

static void add(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    if ((uintptr_t)in % 16 || (uintptr_t)inout % 16) misplaced++;
    for (int i = 0; i < *count; i++) ((pair *)inout)[i].sent += ((pair *)in)[i].sent;
}

#define EVERY_FORM(to, name, ...)                                          \
    for (int form = 0; form < 3; form++) {                                 \
        MPI_Request request;                                               \
        memcpy(to, start, sizeof start);                                   \
        if (form == 0) MPI_##name(__VA_ARGS__);                            \
        if (form == 1) MPI_I##name##_(__VA_ARGS__, &request);              \
        if (form == 2) {                                                   \
            MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &request);       \
            MPI_Start(&request);                                           \
        }                                                                  \
        if (form > 0) MPI_Wait(&request, MPI_STATUS_IGNORE);               \
        if (form == 2) MPI_Request_free(&request);                         \
        CHECK_EQ(misplaced, 0);                                            \
    }
#define MPI_IReduce_(...) MPI_Ireduce(__VA_ARGS__)
#define MPI_IAllreduce_(...) MPI_Iallreduce(__VA_ARGS__)
#define MPI_IReduce_scatter_block_(...) MPI_Ireduce_scatter_block(__VA_ARGS__)
#define MPI_IScan_(...) MPI_Iscan(__VA_ARGS__)
#define MPI_IExscan_(...) MPI_Iexscan(__VA_ARGS__)

static void aligned_elements(void) {
    enum { MOST = 600 };
    static pair start[MOST * 8], out[MOST * 8], in[MOST * 8];
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Datatype second, types[2];
    MPI_Op op;
    MPI_Op_create(add, 1, &op);
    MPI_Type_contiguous(2, MPI_DOUBLE, &types[0]);
    MPI_Type_create_hindexed_block(1, 1, &(MPI_Aint){sizeof(double)}, MPI_DOUBLE, &second);
    MPI_Type_create_resized(second, 0, sizeof(pair), &types[1]);
    for (int i = 0; i < MOST * 8; i++) start[i] = (pair){0, rank + i}, out[i] = start[i];
    for (int t = 0; t < 2; t++) {
        MPI_Type_commit(&types[t]);
        for (int count = 1; count <= MOST; count = count == 1 ? 15 : count * 40)
            for (int in_place = 0; in_place < 2; in_place++) {
                void *from = in_place ? MPI_IN_PLACE : out;
                EVERY_FORM(in, Reduce, rank == 0 ? from : out, in, count, types[t], op, 0, world)
                EVERY_FORM(in, Allreduce, from, in, count, types[t], op, world)
                EVERY_FORM(in, Reduce_scatter_block, from, in, count, types[t], op, world)
                EVERY_FORM(in, Scan, from, in, count, types[t], op, world)
                CHECK(in[count - 1].sent == (rank + 1) * (count - 1) + rank * (rank + 1) / 2);
                EVERY_FORM(in, Exscan, from, in, count, types[t], op, world)
                if (rank > 0) CHECK(in[count - 1].sent == rank * (count - 1) + (rank - 1) * rank / 2);
            }
        MPI_Type_free(&types[t]);
    }
    MPI_Type_free(&second);
    MPI_Op_free(&op);
}

int main(int argc, char **argv) {
    enum { COUNT = 3000 };
    static matrix out[COUNT], in[COUNT];
    int commutes;
    MPI_Op op;
    MPI_Datatype type;
    start(&argc, &argv);
    owner = pthread_self();
    MPI_Op_create(multiply, 0, &op);
    MPI_Op_commutative(op, &commutes);
    CHECK(!commutes);
    MPI_Type_contiguous(4, MPI_LONG_LONG, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < COUNT; i++) out[i] = of(rank, i);
    for (int count = 1; count <= COUNT; count += COUNT - 1) {
        MPI_Allreduce(out, in, count, type, op, MPI_COMM_WORLD);
        expect(in, size - 1, count);
        MPI_Reduce(out, in, count, type, op, size / 2, MPI_COMM_WORLD);
        if (rank == size / 2) expect(in, size - 1, count);
        MPI_Scan(out, in, count, type, op, MPI_COMM_WORLD);
        expect(in, rank, count);
        MPI_Exscan(out, in, count, type, op, MPI_COMM_WORLD);
        if (rank > 0) expect(in, rank - 1, count);
    }
    MPI_Reduce_local(out, in, 1, type, op);
    /* Another type has the handle's number since. */
    MPI_Datatype other;
    MPI_Request requests[2];
    static matrix of_persistent[COUNT];
    MPI_Iallreduce(out, in, COUNT, type, op, MPI_COMM_WORLD, &requests[0]);
    MPI_Allreduce_init(out, of_persistent, COUNT, type, op, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    MPI_Op_free(&op);
    CHECK(op == MPI_OP_NULL);
    MPI_Type_free(&type);
    MPI_Type_contiguous(3, MPI_INT, &other);
    MPI_Start(&requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    expect(in, size - 1, COUNT);
    expect(of_persistent, size - 1, COUNT);
    MPI_Request_free(&requests[1]);
    MPI_Type_free(&other);
    CHECK_EQ(foreign, 0);
    CHECK_EQ(odd, 0);
    aligned_elements();
    return finish();
}
