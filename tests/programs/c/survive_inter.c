// Collectives of an intercommunicator one of whose members is dead end at all that need it, in each form. The groups
// are neighbours, and then every other rank.
//# ranks: 4 5
//# abi: mpi5 mpich openmpi
//# progress: none
//# policies: listed
// Ranks that survive each other do no work for others.
//# nodes: no
// Jobs of several nodes are in tests/runner/nodes/survival.rs.
//# settings: COHORT_ON_FAILURE=continue
//# stderr: rank 2 (pid
//# stderr: killed by signal 9 (SIGKILL)
#include "check.h"
#include "survival.h"
#include <signal.h>
enum { BCAST, BARRIER, ALLREDUCE, ALLGATHER, REDUCE, KINDS };
enum { FORMS = 3, LAYOUTS = 2, MOST = 8 };
static int layout, dead_is_mine;
// Of the kinds in each form: what is given up in one says nothing of the others.
static MPI_Comm inters[LAYOUTS][KINDS][FORMS];
static int in[MOST], out[MOST];

static int is_in_second(int who) { return layout == 0 ? who >= 2 : who % 2 == 0; }

static void make(void) {
    MPI_Comm own, first;
    int second = is_in_second(rank), other = 0;
    while (is_in_second(other) == second) other++;
    CHECK_EQ(MPI_Comm_split(MPI_COMM_WORLD, second, 0, &own), MPI_SUCCESS);
    CHECK_EQ(MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, other, layout, &first), MPI_SUCCESS);
    for (int kind = 0; kind < KINDS; kind++)
        for (int form = 0; form < FORMS; form++)
            CHECK_EQ(MPI_Comm_dup(first, &inters[layout][kind][form]), MPI_SUCCESS);
    MPI_Comm_free(&first);
    MPI_Comm_free(&own);
}

// Rank 2, which is the first of its group, and then the second.
static int root(void) { return dead_is_mine ? MPI_PROC_NULL : layout; }

static int call(int kind, int form, MPI_Comm comm, MPI_Request *request) {
    MPI_Info info = MPI_INFO_NULL;
    // A living member of the other group than the dead one's.
    int root_here = dead_is_mine ? 0 : rank == layout ? MPI_ROOT : MPI_PROC_NULL;
    switch (kind * FORMS + form) {
    case BCAST * FORMS: return MPI_Bcast(in, 1, MPI_INT, root(), comm);
    case BCAST * FORMS + 1: return MPI_Ibcast(in, 1, MPI_INT, root(), comm, request);
    case BCAST * FORMS + 2: return MPI_Bcast_init(in, 1, MPI_INT, root(), comm, info, request);
    case BARRIER * FORMS: return MPI_Barrier(comm);
    case BARRIER * FORMS + 1: return MPI_Ibarrier(comm, request);
    case BARRIER * FORMS + 2: return MPI_Barrier_init(comm, info, request);
    case ALLREDUCE * FORMS: return MPI_Allreduce(in, out, 1, MPI_INT, MPI_SUM, comm);
    case ALLREDUCE * FORMS + 1: return MPI_Iallreduce(in, out, 1, MPI_INT, MPI_SUM, comm, request);
    case ALLREDUCE * FORMS + 2: return MPI_Allreduce_init(in, out, 1, MPI_INT, MPI_SUM, comm, info, request);
    case ALLGATHER * FORMS: return MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_INT, comm);
    case ALLGATHER * FORMS + 1: return MPI_Iallgather(in, 1, MPI_INT, out, 1, MPI_INT, comm, request);
    case ALLGATHER * FORMS + 2: return MPI_Allgather_init(in, 1, MPI_INT, out, 1, MPI_INT, comm, info, request);
    case REDUCE * FORMS: return MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, root_here, comm);
    case REDUCE * FORMS + 1: return MPI_Ireduce(in, out, 1, MPI_INT, MPI_SUM, root_here, comm, request);
    default: return MPI_Reduce_init(in, out, 1, MPI_INT, MPI_SUM, root_here, comm, info, request);
    }
}

// Whether the dead member's data is needed here.
static int needs(int kind) {
    if (dead_is_mine) return 0;
    return kind != REDUCE || rank == layout;
}

static void use(int kind, int form) {
    MPI_Comm comm = inters[layout][kind][form];
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    int code = call(kind, form, comm, &request);
    if (code == MPI_SUCCESS && form == 2) code = MPI_Start(&request);
    if (code == MPI_SUCCESS && form > 0) code = MPI_Wait(&request, &status);
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    int class = code == MPI_SUCCESS ? MPI_SUCCESS : class_of(code);
    if (class != MPIX_ERR_PROC_FAILED && (class != MPI_SUCCESS || needs(kind))) {
        fprintf(stderr, "rank %d: layout %d, kind %d, form %d: class %d\n", rank, layout, kind, form, class);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (layout = 0; layout < LAYOUTS; layout++) make();
    if (rank == 2) {
        for (int i = 1; i < size; i++) MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        raise(SIGKILL);
    }
    CHECK_EQ(MPI_Send(NULL, 0, MPI_INT, 2, 0, MPI_COMM_WORLD), MPI_SUCCESS);
    for (layout = 0; layout < LAYOUTS; layout++) {
        dead_is_mine = is_in_second(rank);
        for (int kind = 0; kind < KINDS; kind++)
            for (int form = 0; form < FORMS; form++) use(kind, form);
    }
    if (rank == 0) puts("passed");
    MPI_Finalize();
    return 0;
}
