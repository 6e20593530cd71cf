// Members of a collective that disagree about its size: it ends at all of them, and where one sends more than the
// others expect, some member reports truncation; of a broadcast also where it sends less. The sizes lie on both sides
// of those at which algorithms change.
// Among nodes members pass data on, as much as they have room for: there a third one may report it as well.
//# ranks: 2 3 8
//# progress: steal, none
#include "check.h"

#define LONGEST (100 << 10)
#define SHORT (4 << 10)

static const int sizes[] = {8, 200, 400, 4 << 10, 70 << 10, LONGEST};
static char *out, *in;
static int among_nodes;

enum { BCAST, REDUCE, ALLREDUCE, SCAN, GATHER, SCATTER, ALLGATHER, ALLTOALL, REDUCE_SCATTER_BLOCK, KINDS };

/* One operation with `count` bytes; the return code. */
static int call(int kind, int count, int root, int nonblocking) {
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Request request;
    MPI_Datatype byte = MPI_UNSIGNED_CHAR;
    int code = MPI_SUCCESS;
    if (!nonblocking) switch (kind) {
        case BCAST: return MPI_Bcast(out, count, byte, root, comm);
        case REDUCE: return MPI_Reduce(out, in, count, byte, MPI_MAX, root, comm);
        case ALLREDUCE: return MPI_Allreduce(out, in, count, byte, MPI_MAX, comm);
        case SCAN: return MPI_Scan(out, in, count, byte, MPI_MAX, comm);
        case GATHER: return MPI_Gather(out, count, byte, in, count, byte, root, comm);
        case SCATTER: return MPI_Scatter(out, count, byte, in, count, byte, root, comm);
        case ALLGATHER: return MPI_Allgather(out, count, byte, in, count, byte, comm);
        case ALLTOALL: return MPI_Alltoall(out, count, byte, in, count, byte, comm);
        default: return MPI_Reduce_scatter_block(out, in, count, byte, MPI_MAX, comm);
        }
    switch (kind) {
    case BCAST: code = MPI_Ibcast(out, count, byte, root, comm, &request); break;
    case REDUCE: code = MPI_Ireduce(out, in, count, byte, MPI_MAX, root, comm, &request); break;
    case ALLREDUCE: code = MPI_Iallreduce(out, in, count, byte, MPI_MAX, comm, &request); break;
    case SCAN: code = MPI_Iscan(out, in, count, byte, MPI_MAX, comm, &request); break;
    case GATHER: code = MPI_Igather(out, count, byte, in, count, byte, root, comm, &request); break;
    case SCATTER: code = MPI_Iscatter(out, count, byte, in, count, byte, root, comm, &request); break;
    case ALLGATHER: code = MPI_Iallgather(out, count, byte, in, count, byte, comm, &request); break;
    case ALLTOALL: code = MPI_Ialltoall(out, count, byte, in, count, byte, comm, &request); break;
    default: code = MPI_Ireduce_scatter_block(out, in, count, byte, MPI_MAX, comm, &request);
    }
    CHECK_EQ(code, MPI_SUCCESS);
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Member `odd` has another size than the others. */
static void disagree(int kind, int common, int other, int odd, int root, int nonblocking) {
    int code = call(kind, rank == odd ? other : common, root, nonblocking);
    int truncated = code != MPI_SUCCESS, reported;
    CHECK(code == MPI_SUCCESS || class_of(code) == MPI_ERR_TRUNCATE);
    MPI_Allreduce(&truncated, &reported, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    /* What only the root or only the odd one reads may be shorter than their room. */
    int sends_more = kind == SCATTER  ? (root == odd) == (other > common)
                     : kind == GATHER ? (root == odd) == (other < common)
                                      : 1;
    /* Who gathers short blocks into longer room, or the other way, may hear of it: those take another way. */
    int ways_differ = nonblocking && kind == GATHER && (common > SHORT) != (other > SHORT);
    if ((among_nodes || ways_differ) && !sends_more) return;
    if (sends_more != reported) fprintf(stderr, "kind %d, %d and %d bytes\n", kind, common, other);
    CHECK_EQ(reported, sends_more);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm node;
    int neighbours;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &neighbours);
    MPI_Comm_free(&node);
    among_nodes = neighbours < size;
    out = calloc(size, LONGEST);
    in = calloc(size, LONGEST);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < 6 * 6; i++) {
            int common = sizes[i / 6], other = sizes[i % 6];
            if (common == other) continue;
            for (int nonblocking = 0; nonblocking < 2; nonblocking++)
                disagree(kind, common, other, (i + nonblocking) % size, i / 5 % size, nonblocking);
            /* Who comes late differs from time to time. */
            for (volatile int delay = 0; delay < rank * i * 20; delay++) continue;
        }
    free(out), free(in);
    return finish();
}
