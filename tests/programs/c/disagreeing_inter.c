// Members of an intercommunicator that disagree about a reduction's size, within a group or between the groups: it ends
// at all of them, some member reports truncation, and who does not has a whole result or none that it would use.
//# ranks: 2 3 6
//# progress: steal, none
#include "check.h"

#define LONGEST (70 << 10)

static const int sizes[] = {8, 400, 4 << 10, LONGEST};
static unsigned char *out, *in;
static MPI_Comm inter;
static int is_first;

enum { REDUCE, ALLREDUCE, REDUCE_SCATTER_BLOCK, KINDS };

/* One operation with `count` bytes; the return code. The result is that of the first group, where there is one. */
static int call(int kind, int count, int nonblocking) {
    MPI_Datatype byte = MPI_UNSIGNED_CHAR;
    MPI_Request request;
    int here, code, root = is_first ? MPI_ROOT : 0;
    MPI_Comm_rank(inter, &here);
    if (is_first && here > 0) root = MPI_PROC_NULL;
    if (!nonblocking) switch (kind) {
        case REDUCE: return MPI_Reduce(out, in, count, byte, MPI_MAX, root, inter);
        case ALLREDUCE: return MPI_Allreduce(out, in, count, byte, MPI_MAX, inter);
        default: return MPI_Reduce_scatter_block(out, in, count, byte, MPI_MAX, inter);
        }
    switch (kind) {
    case REDUCE: code = MPI_Ireduce(out, in, count, byte, MPI_MAX, root, inter, &request); break;
    case ALLREDUCE: code = MPI_Iallreduce(out, in, count, byte, MPI_MAX, inter, &request); break;
    default: code = MPI_Ireduce_scatter_block(out, in, count, byte, MPI_MAX, inter, &request);
    }
    CHECK_EQ(code, MPI_SUCCESS);
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* `mine` bytes at this member; whether anybody disagrees. */
static void one(int kind, int mine, int disagree, int nonblocking) {
    int code = call(kind, mine, nonblocking), truncated = code != MPI_SUCCESS, reported;
    CHECK(code == MPI_SUCCESS || class_of(code) == MPI_ERR_TRUNCATE);
    MPI_Allreduce(&truncated, &reported, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (disagree != reported) fprintf(stderr, "kind %d, nonblocking %d, %d bytes\n", kind, nonblocking, mine);
    CHECK_EQ(reported, disagree);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm half;
    is_first = rank < (size + 1) / 2;
    MPI_Comm_split(MPI_COMM_WORLD, is_first, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, is_first ? (size + 1) / 2 : 0, 1, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    int first = (size + 1) / 2, second = size - first, factor = first * second;
    out = calloc(factor, LONGEST), in = calloc(factor, LONGEST);
    memset(out, rank + 1, (size_t)factor * LONGEST);
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < 4 * 4; i++)
            for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
                int common = sizes[i / 4], other = sizes[i % 4], odd = (i + nonblocking) % size;
                /* Blocks of a scattered reduction are as long in sum on both sides. */
                int share = kind == REDUCE_SCATTER_BLOCK ? (is_first ? second : first) : 1;
                /* Of the group of a reduction's root only the root takes part. */
                int takes_part = kind != REDUCE || odd == 0 || odd >= first;
                one(kind, share * (rank == odd ? other : common), common != other && takes_part, nonblocking);
                /* The groups disagree. */
                one(kind, share * (is_first ? other : common), common != other, nonblocking);
                one(kind, share * common, 0, nonblocking);
                if (kind == ALLREDUCE)
                    for (int at = 0; at < common; at++) CHECK_EQ(in[at], is_first ? size : first);
            }
    MPI_Comm_free(&inter), MPI_Comm_free(&half);
    free(out), free(in);
    return finish();
}
