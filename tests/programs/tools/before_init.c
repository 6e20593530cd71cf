// Two ranks on each of two nodes. Those of one of them end before MPI_Init (`leave`), and the others wait for them, in
// the way that their argument says; `end` only in MPI_Finalize; `agree`, `iagree` and `shrink` with the others. With
// `sessions` they end after a session of their own, with `joins` and `offers` after one of all, in which rank 0 of the
// latter sends what rank 3 never takes.
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char data[2000000];

static void session(const char *processes, int joins, int offers) {
    static char room[2 * sizeof data];
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int rank;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, processes, &group);
    MPI_Comm_create_from_group(group, "one", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    if (!joins) MPI_Barrier(comm);
    MPI_Comm_rank(comm, &rank);
    if (offers && rank == 0) {
        sleep(1);
        MPI_Buffer_attach(room, sizeof room);
        MPI_Bsend(data, sizeof data, MPI_CHAR, 3, 0, comm);
    }
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
}

// Others are missing where all agree, or shrink.
static void go_on_without(const char *way) {
    MPI_Comm left = MPI_COMM_WORLD;
    MPI_Request request = MPI_REQUEST_NULL;
    int flag = 1, size, code = MPI_SUCCESS, class;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (strcmp(way, "agree") == 0) code = MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
    if (strcmp(way, "iagree") == 0) MPIX_Comm_iagree(MPI_COMM_WORLD, &flag, &request);
    if (strcmp(way, "iagree") == 0) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (strcmp(way, "shrink") == 0) code = MPIX_Comm_shrink(MPI_COMM_WORLD, &left);
    MPI_Error_class(code, &class);
    MPI_Comm_size(left, &size);
    printf("%s of %d: %s\n", way, size, class == MPIX_ERR_PROC_FAILED ? "failed" : "no failure");
    fflush(stdout);
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "barrier";
    int offers = strcmp(way, "offers") == 0, joins = offers || strcmp(way, "joins") == 0;
    if (strcmp(way, "sessions") == 0) session("mpi://SELF", 0, 0);
    if (joins) session("mpi://WORLD", 1, offers);
    if (joins || strcmp(way, "sessions") == 0 || strcmp(way, "leave") == 0) return 0;
    MPI_Init(NULL, NULL);
    int rank, code = MPI_SUCCESS, class = MPI_SUCCESS;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(way, "barrier") == 0) MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(way, "ssend") == 0 && rank == 0) MPI_Ssend(data, 1, MPI_CHAR, 3, 0, MPI_COMM_WORLD);
    if (strcmp(way, "ibarrier") == 0) MPI_Ibarrier(MPI_COMM_WORLD, &request);
    if (strcmp(way, "ialltoall") == 0)
        MPI_Ialltoall(data, 1, MPI_INT, data + 1000, 1, MPI_INT, MPI_COMM_WORLD, &request);
    if (strcmp(way, "ireduce") == 0)
        MPI_Ireduce(data, data + 50000, 10000, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (strstr(way, "agree") || strcmp(way, "shrink") == 0) go_on_without(way);
    if (strcmp(way, "survive") == 0 && rank == 0) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        code = MPI_Recv(data, 1, MPI_CHAR, 3, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Error_class(code, &class);
        puts(class == MPIX_ERR_PROC_FAILED ? "it was told of the failure" : "it was not");
        fflush(stdout);
    }
    return MPI_Finalize();
}
