/* `crossed A B COUNT`: odd ranks call collectives A and B in another order than even ones. What a call has returned
   with must be right nevertheless: status 99 if it is not. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int me, size, count;
static int *out, *in;

static void expect(int at, int value)
{
    if (in[at] != value) {
        fprintf(stderr, "wrong data: %d, not %d\n", in[at], value);
        MPI_Abort(MPI_COMM_WORLD, 99);
    }
}

static void call(const char *name)
{
    MPI_Comm comm = MPI_COMM_WORLD, copy;
    int sum = size * (size + 1) / 2;
    for (int i = 0; i < size * count; i++)
        out[i] = me + 1;
    memset(in, 0, size * count * sizeof *in);
    if (strcmp(name, "barrier") == 0)
        MPI_Barrier(comm);
    if (strcmp(name, "bcast") == 0) {
        in[0] = me + 1;
        MPI_Bcast(in, count, MPI_INT, 0, comm);
        expect(0, 1);
    }
    if (strcmp(name, "gather") == 0) {
        MPI_Gather(out, count, MPI_INT, in, count, MPI_INT, 0, comm);
        for (int i = 0; me == 0 && i < size; i++)
            expect(i * count, i + 1);
    }
    if (strcmp(name, "scatter") == 0) {
        MPI_Scatter(out, count, MPI_INT, in, count, MPI_INT, 0, comm);
        expect(0, 1);
    }
    if (strcmp(name, "allgather") == 0 || strcmp(name, "alltoall") == 0) {
        if (name[3] == 'g')
            MPI_Allgather(out, count, MPI_INT, in, count, MPI_INT, comm);
        else
            MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, comm);
        for (int i = 0; i < size; i++)
            expect(i * count, i + 1);
    }
    if (strcmp(name, "reduce") == 0) {
        MPI_Reduce(out, in, count, MPI_INT, MPI_SUM, 0, comm);
        if (me == 0)
            expect(0, sum);
    }
    if (strcmp(name, "allreduce") == 0) {
        MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, comm);
        expect(0, sum);
    }
    if (strcmp(name, "scan") == 0) {
        MPI_Scan(out, in, count, MPI_INT, MPI_SUM, comm);
        expect(0, (me + 1) * (me + 2) / 2);
    }
    if (strcmp(name, "dup") == 0) {
        MPI_Comm_dup(comm, &copy);
        MPI_Comm_free(&copy);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    count = argc > 3 ? atoi(argv[3]) : 1;
    out = malloc(size * count * sizeof *out);
    in = malloc(size * count * sizeof *in);
    call(argv[1 + me % 2]);
    call(argv[2 - me % 2]);
    MPI_Finalize();
    return 0;
}
