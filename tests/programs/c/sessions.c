// Several sessions at once, each with its own thread level, errors, groups and messages; MPI can be used
// again after the last one has ended, beside the world model and after it (MPI 4.1 11.3).
//# ranks: 1 2 5
//# progress: steal, none, thread
//# wait: auto, park
#include "check.h"

static int seen;

static void note(MPI_Session *session, int *code, ...) {
    (void)session, (void)code;
    seen++;
}

static MPI_Session begin(const char *level) {
    MPI_Session session;
    MPI_Info info;
    char value[64];
    int room = sizeof value, flag, sets;
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", level);
    MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Info_free(&info);
    MPI_Session_get_info(session, &info);
    MPI_Info_get_string(info, "thread_level", &room, value, &flag);
    CHECK(flag && strcmp(value, level) == 0);
    MPI_Info_free(&info);
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets);
    CHECK_EQ(sets, 2);
    return session;
}

static MPI_Comm world_of(MPI_Session session, const char *tag) {
    MPI_Group group;
    MPI_Comm comm;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    return comm;
}

/* Messages with the same envelope on two communicators do not meet each other's receives. */
static void exchange(MPI_Comm first, MPI_Comm second) {
    int right = (rank + 1) % size, left = (rank + size - 1) % size, out[2] = {10 + rank, 20 + rank}, in[2];
    MPI_Request requests[4];
    MPI_Irecv(&in[1], 1, MPI_INT, left, 0, second, &requests[0]);
    MPI_Irecv(&in[0], 1, MPI_INT, left, 0, first, &requests[1]);
    MPI_Isend(&out[0], 1, MPI_INT, right, 0, first, &requests[2]);
    MPI_Isend(&out[1], 1, MPI_INT, right, 0, second, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    CHECK_EQ(in[0], 10 + left);
    CHECK_EQ(in[1], 20 + left);
}

static void two_at_once(void) {
    MPI_Session one = begin("MPI_THREAD_SINGLE"), two = begin("MPI_THREAD_MULTIPLE");
    CHECK(one != two);
    MPI_Comm first = world_of(one, "first"), second = world_of(two, "second");
    exchange(first, second);
    MPI_Errhandler handler;
    MPI_Session_create_errhandler(note, &handler);
    MPI_Session_set_errhandler(two, handler);
    MPI_Errhandler_free(&handler);
    seen = 0;
    MPI_Session_call_errhandler(two, MPI_ERR_OTHER);
    CHECK_EQ(seen, 1);
    MPI_Group unknown;
    memset(&unknown, -1, sizeof unknown);
    CHECK_EQ(class_of(MPI_Group_from_session_pset(two, "nobody://is/called/so", &unknown)), MPI_ERR_ARG);
    CHECK(unknown == MPI_GROUP_NULL);
    CHECK_EQ(seen, 2);
    MPI_Comm_disconnect(&first);
    MPI_Session_finalize(&one);
    CHECK(one == MPI_SESSION_NULL);
    /* The other one lives on. */
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, second);
    CHECK_EQ(sum, size * (size - 1) / 2);
    MPI_Comm_disconnect(&second);
    MPI_Session_finalize(&two);
}

int main(int argc, char **argv) {
    int flag;
    for (int i = 0; i < 3; i++) two_at_once();
    MPI_Initialized(&flag);
    CHECK(!flag);
    MPI_Init(&argc, &argv);
    two_at_once();
    MPI_Finalize();
    MPI_Finalized(&flag);
    CHECK(flag);
    two_at_once();
    if (rank == 0) puts("passed");
    return 0;
}
