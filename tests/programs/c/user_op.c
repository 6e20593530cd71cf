// A user operation that does not commute is applied in rank order, on the caller's own thread, also on a derived
// datatype, which it may ask about although its handle was freed meanwhile. The operation is the product of 2 x 2
// matrices.
//# ranks: 1 2 3 4 7
//# abi: mpich, mpi5, openmpi
//# progress: steal, none
//# libs: -lpthread
#include "check.h"
#include <pthread.h>
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
    return finish();
}
