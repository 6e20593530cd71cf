// What is made of the groups of a session has its buffer: intercommunicators that are merged, and unions of groups.
//# ranks: 2 4
#include "check.h"

static MPI_Session session;

static MPI_Group half_of(MPI_Group all, int upper) {
    int count, range[1][3];
    MPI_Group half;
    MPI_Group_size(all, &count);
    range[0][0] = upper ? count / 2 : 0;
    range[0][1] = upper ? count - 1 : count / 2 - 1;
    range[0][2] = 1;
    MPI_Group_range_incl(all, 1, range, &half);
    return half;
}

// Everybody sends to the next one by a buffer that only the session has.
static void sends_to_next(MPI_Comm comm) {
    int me, count, got = -1;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &count);
    MPI_Bsend(&me, 1, MPI_INT, (me + 1) % count, 0, comm);
    MPI_Recv(&got, 1, MPI_INT, (me + count - 1) % count, 0, comm, MPI_STATUS_IGNORE);
    if (got != (me + count - 1) % count) exit(1);
    MPI_Comm_free(&comm);
}

int main(void) {
    static char buffer[1000 + MPI_BSEND_OVERHEAD];
    MPI_Group all, groups[2], both;
    MPI_Comm inter, merged, joined;
    int me;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    MPI_Group_rank(all, &me);
    MPI_Group_size(all, &size);
    MPI_Session_attach_buffer(session, buffer, sizeof buffer);
    int upper = me >= size / 2;
    groups[0] = half_of(all, upper);
    groups[1] = half_of(all, !upper);
    MPI_Intercomm_create_from_groups(groups[0], 0, groups[1], 0, "halves", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &inter);
    MPI_Intercomm_merge(inter, upper, &merged);
    sends_to_next(merged);
    MPI_Group_union(MPI_GROUP_EMPTY, all, &both);
    MPI_Comm_create_from_group(both, "union", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &joined);
    sends_to_next(joined);
    void *place;
    int bytes;
    MPI_Session_detach_buffer(session, &place, &bytes);
    MPI_Comm_free(&inter);
    MPI_Group_free(&all);
    MPI_Group_free(&both);
    MPI_Group_free(&groups[0]);
    MPI_Group_free(&groups[1]);
    MPI_Session_finalize(&session);
    return 0;
}
