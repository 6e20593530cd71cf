// Ranks come to outnumber CPUs while a member waits in a collective that another one has not called yet: all members
// still take the same way. The argument says which collective is the first one then.
#include "../c/check.h"

enum { CHILDREN = 6, LENGTHS = 6, KINDS = 8, MOST = 20000 };

static int in[2 * MOST], out[2 * MOST];

/* One collective whose way depends on its length, with so many elements. */
static void collective(MPI_Comm comm, int kind, int count) {
    int last = size - 1;
    for (int i = 0; i < count; i++) out[i] = rank + i;
    switch (kind) {
        case 0:
            MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, comm);
            for (int i = 0; i < count; i++) CHECK_EQ(in[i], size * i + size * last / 2);
            break;
        case 1:
            MPI_Reduce(out, in, count, MPI_INT, MPI_SUM, 0, comm);
            for (int i = 0; rank == 0 && i < count; i++) CHECK_EQ(in[i], size * i + size * last / 2);
            break;
        case 2:
            MPI_Scan(out, in, count, MPI_INT, MPI_SUM, comm);
            for (int i = 0; i < count; i++) CHECK_EQ(in[i], (rank + 1) * i + rank * (rank + 1) / 2);
            break;
        case 3:
            MPI_Gather(out, count, MPI_INT, in, count, MPI_INT, 0, comm);
            if (rank == 0) CHECK_EQ(in[last * count + 1], last + 1);
            break;
        case 4:
            MPI_Allgather(out, count, MPI_INT, in, count, MPI_INT, comm);
            CHECK_EQ(in[last * count + 1], last + 1);
            break;
        case 5:
            MPI_Alltoall(out, count / size, MPI_INT, in, count / size, MPI_INT, comm);
            CHECK_EQ(in[last * (count / size)], last + rank * (count / size));
            break;
        case 6:
            MPI_Bcast(out, count, MPI_INT, 0, comm);
            CHECK_EQ(out[count - 1], count - 1);
            break;
        default:
            MPI_Reduce_scatter_block(out, in, count / size, MPI_INT, MPI_SUM, comm);
            CHECK_EQ(in[0], size * rank * (count / size) + size * last / 2);
    }
}

static void all(MPI_Comm comm, int first) {
    const int lengths[LENGTHS] = {2, 30, 200, 1000, 4000, MOST};
    for (int i = first; i < first + KINDS * LENGTHS; i++) collective(comm, i % KINDS, lengths[i / KINDS % LENGTHS]);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm parent, children = MPI_COMM_NULL, later;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }
    if (rank == 0) {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children,
                       MPI_ERRCODES_IGNORE);
    }
    all(MPI_COMM_WORLD, atoi(argv[1]));
    /* One that is made now is made by members who all know. */
    MPI_Comm_dup(MPI_COMM_WORLD, &later);
    all(later, 0);
    MPI_Comm_free(&later);
    if (children != MPI_COMM_NULL) MPI_Comm_disconnect(&children);
    return finish();
}
