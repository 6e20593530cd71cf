// Members of a collective that disagree are told so, all of them and at once, in every form; those that agree in other
// words go on. After an error the communicator may be used again.
//# ranks: 3
//# progress: steal, none
//# settings: COHORT_CHECK=members
//# nodes: no
// Among nodes calls that do not block are not compared: members_apart.c.
#include "check.h"

enum { BARRIER, BCAST, GATHER, SCATTER, ALLGATHER, ALLTOALL, REDUCE, ALLREDUCE, REDUCE_SCATTER, SCAN, EXSCAN, NEIGHBOR,
       KINDS };
enum { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };

static int out[64], in[64];
static MPI_Comm comm;

static int start_one(int kind, int form, MPI_Request *request) {
    MPI_Datatype t = MPI_INT;
    MPI_Info info = MPI_INFO_NULL;
    int counts[3] = {1, 1, 1}, n = 1;
#define FORM(call, icall, init) return form == BLOCKING ? call : form == NONBLOCKING ? icall : init
    switch (kind) {
    case BARRIER: FORM(MPI_Barrier(comm), MPI_Ibarrier(comm, request), MPI_Barrier_init(comm, info, request));
    case BCAST: FORM(MPI_Bcast(out, n, t, 0, comm), MPI_Ibcast(out, n, t, 0, comm, request),
                     MPI_Bcast_init(out, n, t, 0, comm, info, request));
    case GATHER: FORM(MPI_Gather(out, n, t, in, n, t, 0, comm), MPI_Igather(out, n, t, in, n, t, 0, comm, request),
                      MPI_Gather_init(out, n, t, in, n, t, 0, comm, info, request));
    case SCATTER: FORM(MPI_Scatter(out, n, t, in, n, t, 0, comm), MPI_Iscatter(out, n, t, in, n, t, 0, comm, request),
                       MPI_Scatter_init(out, n, t, in, n, t, 0, comm, info, request));
    case ALLGATHER: FORM(MPI_Allgather(out, n, t, in, n, t, comm), MPI_Iallgather(out, n, t, in, n, t, comm, request),
                         MPI_Allgather_init(out, n, t, in, n, t, comm, info, request));
    case ALLTOALL: FORM(MPI_Alltoall(out, n, t, in, n, t, comm), MPI_Ialltoall(out, n, t, in, n, t, comm, request),
                        MPI_Alltoall_init(out, n, t, in, n, t, comm, info, request));
    case REDUCE: FORM(MPI_Reduce(out, in, n, t, MPI_SUM, 0, comm),
                      MPI_Ireduce(out, in, n, t, MPI_SUM, 0, comm, request),
                      MPI_Reduce_init(out, in, n, t, MPI_SUM, 0, comm, info, request));
    case ALLREDUCE: FORM(MPI_Allreduce(out, in, n, t, MPI_SUM, comm),
                         MPI_Iallreduce(out, in, n, t, MPI_SUM, comm, request),
                         MPI_Allreduce_init(out, in, n, t, MPI_SUM, comm, info, request));
    case REDUCE_SCATTER: FORM(MPI_Reduce_scatter(out, in, counts, t, MPI_SUM, comm),
                              MPI_Ireduce_scatter(out, in, counts, t, MPI_SUM, comm, request),
                              MPI_Reduce_scatter_init(out, in, counts, t, MPI_SUM, comm, info, request));
    case SCAN: FORM(MPI_Scan(out, in, n, t, MPI_SUM, comm), MPI_Iscan(out, in, n, t, MPI_SUM, comm, request),
                    MPI_Scan_init(out, in, n, t, MPI_SUM, comm, info, request));
    case EXSCAN: FORM(MPI_Exscan(out, in, n, t, MPI_SUM, comm), MPI_Iexscan(out, in, n, t, MPI_SUM, comm, request),
                      MPI_Exscan_init(out, in, n, t, MPI_SUM, comm, info, request));
    default: /* Its form that does not block is not compared. */
        FORM(MPI_Neighbor_allgather(out, n, t, in, n, t, comm), MPI_Ibarrier(comm, request),
             MPI_Neighbor_allgather_init(out, n, t, in, n, t, comm, info, request));
    }
}

/* The return code of one operation, once it has ended. */
static int one(int kind, int form) {
    MPI_Request request = MPI_REQUEST_NULL;
    int code = start_one(kind, form, &request);
    if (code != MPI_SUCCESS || form == BLOCKING) return code;
    if (form == PERSISTENT) {
        MPI_Start(&request);
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
        return code;
    }
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* The error of a code names two ranks; all members have one. */
static void refused(int code, const char *what, int line) {
    int all = class_of(code) == MPI_ERR_NOT_SAME, everybody = 0;
    CHECK_EQ(MPI_Allreduce(&all, &everybody, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD), MPI_SUCCESS);
    if (!everybody) fprintf(stderr, "rank %d: line %d, %s: class %d\n", rank, line, what, class_of(code));
    CHECK(everybody);
}

static void different_calls(void) {
    for (int kind = 0; kind < KINDS; kind++)
        for (int form = 0; form < FORMS; form++) {
            CHECK_EQ(one(kind, form), MPI_SUCCESS);
            for (int other = 0; other < KINDS; other++)
                for (int its = 0; its < FORMS; its++) {
                    int is_same = (kind == other || (form == NONBLOCKING && (kind + other == NEIGHBOR))) && form == its;
                    if (is_same || kind == NEIGHBOR || other == NEIGHBOR) continue;
                    char what[64];
                    sprintf(what, "kinds %d and %d, forms %d and %d", kind, other, form, its);
                    refused(rank == 1 ? one(other, its) : one(kind, form), what, __LINE__);
                }
        }
    refused(rank == 1 ? one(BARRIER, BLOCKING) : one(NEIGHBOR, BLOCKING), "neighbours", __LINE__);
}

#define REFUSED(...) refused(__VA_ARGS__, #__VA_ARGS__, __LINE__)
#define AGREED(...) CHECK_EQ(__VA_ARGS__, MPI_SUCCESS)

static void twice(void *from, void *to, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count; i++) ((int *)to)[i] += ((int *)from)[i];
}

static void different_arguments(void) {
    int odd = rank == 2, counts[3] = {1, 2, 3}, others[3] = {1, 3, 2}, starts[3] = {0, 4, 8};
    MPI_Datatype pair, mixed, nested, types[2] = {MPI_INT, MPI_DOUBLE};
    MPI_Op own;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, types, &mixed);
    MPI_Type_contiguous(2, mixed, &nested);
    MPI_Type_commit(&pair), MPI_Type_commit(&mixed), MPI_Type_commit(&nested);
    MPI_Op_create(twice, 1, &own);
    REFUSED(MPI_Bcast(out, 1, MPI_INT, odd, comm));
    REFUSED(MPI_Bcast(out, 1 + odd, MPI_INT, 0, comm));
    REFUSED(MPI_Bcast(out, 1, odd ? MPI_FLOAT : MPI_INT, 0, comm));
    REFUSED(MPI_Bcast(out, 1, odd ? nested : mixed, 0, comm));
    AGREED(MPI_Bcast(out, odd ? 4 : 2, odd ? MPI_INT : pair, 0, comm));
    AGREED(MPI_Bcast(out, odd ? 1 : 2, odd ? nested : mixed, 0, comm));
    AGREED(MPI_Bcast(out, 1, odd ? MPI_2INT : pair, 0, comm));
    REFUSED(MPI_Reduce(out, in, 1, MPI_INT, odd ? MPI_MAX : MPI_SUM, 0, comm));
    REFUSED(MPI_Reduce(out, in, 1, MPI_INT, odd ? own : MPI_SUM, 0, comm));
    AGREED(MPI_Reduce(out, in, 1, MPI_INT, own, 0, comm));
    AGREED(MPI_Reduce(rank ? out : MPI_IN_PLACE, in, 1, MPI_INT, MPI_SUM, 0, comm));
    REFUSED(MPI_Allreduce(odd ? MPI_IN_PLACE : out, in, 1, MPI_INT, MPI_SUM, comm));
    AGREED(MPI_Scan(odd ? MPI_IN_PLACE : out, in, 1, MPI_INT, MPI_SUM, comm));
    AGREED(MPI_Exscan(odd ? MPI_IN_PLACE : out, in, 1, MPI_INT, MPI_SUM, comm));
    AGREED(MPI_Reduce_scatter(odd ? out : MPI_IN_PLACE, odd ? NULL : in, (int[]){1, 1, 0}, MPI_INT, MPI_SUM, comm));
    REFUSED(MPI_Allreduce(out, in, 1 + odd, MPI_INT, MPI_SUM, comm));
    REFUSED(MPI_Reduce_scatter(out, in, odd ? counts : others, MPI_INT, MPI_SUM, comm));
    REFUSED(MPI_Scan(out, in, 1, odd ? MPI_UNSIGNED : MPI_INT, MPI_SUM, comm));
    AGREED(MPI_Gatherv(out, 1 + rank, MPI_INT, in, counts, starts, MPI_INT, 0, comm));
    REFUSED(MPI_Gatherv(out, 1 + rank, MPI_INT, in, others, starts, MPI_INT, 0, comm));
    REFUSED(MPI_Scatterv(out, counts, starts, MPI_INT, in, 2, MPI_INT, 1, comm));
    AGREED(MPI_Scatterv(out, counts, starts, MPI_INT, in, 1 + rank, MPI_INT, 1, comm));
    REFUSED(MPI_Allgatherv(out, 1 + rank, MPI_INT, in, odd ? others : counts, starts, MPI_INT, comm));
    REFUSED(odd ? MPI_Allgather(out, 2, MPI_INT, in, 2, MPI_INT, comm)
                : MPI_Allgatherv(out, 2, MPI_INT, in, (int[]){2, 2, 2}, starts, MPI_INT, comm));
    int to[3] = {1 + rank, 1 + rank, 1 + rank}, from[3] = {1, 2, 3};
    AGREED(MPI_Alltoallv(out, to, starts, MPI_INT, in, from, starts, MPI_INT, comm));
    if (odd) from[1] = 1;
    REFUSED(MPI_Alltoallv(out, to, starts, MPI_INT, in, from, starts, MPI_INT, comm));
    REFUSED(MPI_Neighbor_alltoall(out, 1 + odd, MPI_INT, in, 1, MPI_INT, comm));
    MPI_Op_free(&own);
    MPI_Type_free(&pair), MPI_Type_free(&mixed), MPI_Type_free(&nested);
}

/* Calls that make objects are compared with collectives, and what begins early is not waited for. */
static void objects_and_order(void) {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Request request;
    int token = 0;
    REFUSED(rank == 1 ? MPI_Barrier(comm) : MPI_Comm_split(comm, 0, rank, &made));
    if (rank) MPI_Recv(&token, 1, MPI_INT, rank - 1, 1, comm, MPI_STATUS_IGNORE);
    AGREED(MPI_Ibarrier(comm, &request));
    if (rank < size - 1) MPI_Send(&token, 1, MPI_INT, rank + 1, 1, comm);
    AGREED(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &(int){1}, 0, &comm);
    different_calls();
    different_arguments();
    objects_and_order();
    MPI_Comm_free(&comm);
    return finish();
}
