// The error handler that a call is given hears of that very call's failure, and no other does: MPI_Session_init,
// MPI_Comm_create_from_group, MPI_Intercomm_create_from_groups. The default one of MPI_COMM_WORLD would end the job.
//# ranks: 1 2
#include "check.h"
static int heard, last_code;

static void of_session(MPI_Session *session, int *code, ...) {
    CHECK(*session == MPI_SESSION_NULL);
    heard++, last_code = *code;
}

static void of_comm(MPI_Comm *comm, int *code, ...) {
    CHECK(*comm == MPI_COMM_NULL);
    heard++, last_code = *code;
}

static void sessions(void) {
    MPI_Session session;
    MPI_Errhandler own;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "nonsense");
    MPI_Session_create_errhandler(of_session, &own);
    CHECK_EQ(class_of(MPI_Session_init(info, MPI_ERRORS_RETURN, &session)), MPI_ERR_INFO_VALUE);
    CHECK_EQ(heard, 0);
    int code = MPI_Session_init(info, own, &session);
    CHECK(heard == 1 && code == last_code && class_of(code) == MPI_ERR_INFO_VALUE);
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, "long") == NULL);
    code = MPI_Session_init(MPI_INFO_NULL, own, NULL);
    CHECK(heard == 2 && code == last_code && class_of(code) == MPI_ERR_ARG);
    MPI_Info_free(&info);
    MPI_Errhandler_free(&own);
    heard = 0;
}

static void communicators(void) {
    MPI_Comm comm;
    MPI_Errhandler own;
    MPI_Group all;
    MPI_Comm_create_errhandler(of_comm, &own);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    CHECK_EQ(class_of(MPI_Comm_create_from_group(all, "tag", MPI_INFO_NULL, MPI_ERRORS_RETURN, NULL)), MPI_ERR_ARG);
    CHECK_EQ(heard, 0);
    int code = MPI_Comm_create_from_group(all, "tag", MPI_INFO_NULL, own, NULL);
    CHECK(heard == 1 && code == last_code && class_of(code) == MPI_ERR_ARG);
    code = MPI_Intercomm_create_from_groups(all, 77, all, 0, "tag", MPI_INFO_NULL, own, &comm);
    CHECK(heard == 2 && code == last_code && class_of(code) == MPI_ERR_RANK);
    code = MPI_Intercomm_create_from_groups(all, 77, all, 0, "tag", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    CHECK(heard == 2 && class_of(code) == MPI_ERR_RANK);
    // What it makes has the handler.
    CHECK_EQ(MPI_Comm_create_from_group(all, "tag", MPI_INFO_NULL, own, &comm), MPI_SUCCESS);
    MPI_Errhandler got;
    MPI_Comm_get_errhandler(comm, &got);
    CHECK(got == own);
    MPI_Errhandler_free(&got);
    MPI_Comm_free(&comm);
    MPI_Group_free(&all);
    MPI_Errhandler_free(&own);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    sessions();
    communicators();
    return finish();
}
