// Names that the standard gives to datatypes and process sets, and what a session's info may ask for.
//# ranks: 1 2
//# abi: mpich, mpi5, openmpi
#include "check.h"

static void is_called(MPI_Datatype datatype, const char *expected) {
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    MPI_Type_get_name(datatype, name, &length);
    if (strcmp(name, expected)) fprintf(stderr, "%s is called %s\n", expected, name);
    CHECK_EQ(length, strlen(expected));
    CHECK(strcmp(name, expected) == 0);
}

// A type with several names has by default the one that the others are synonyms of.
static void datatypes(void) {
    is_called(MPI_LONG_LONG, "MPI_LONG_LONG_INT");
    is_called(MPI_LONG_LONG_INT, "MPI_LONG_LONG_INT");
    is_called(MPI_C_COMPLEX, "MPI_C_COMPLEX");
    is_called(MPI_C_FLOAT_COMPLEX, "MPI_C_COMPLEX");
    is_called(MPI_C_DOUBLE_COMPLEX, "MPI_C_DOUBLE_COMPLEX");
    is_called(MPI_UNSIGNED_LONG_LONG, "MPI_UNSIGNED_LONG_LONG");
    is_called(MPI_INT, "MPI_INT");
}

static void process_sets(void) {
    const char *sets[] = {"mpi://WORLD", "mpi://world", "MPI://World", "mpi://SELF", "Mpi://self"};
    MPI_Session session;
    MPI_Group group;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    for (int i = 0; i < 5; i++) {
        int members;
        CHECK_EQ(MPI_Group_from_session_pset(session, sets[i], &group), MPI_SUCCESS);
        MPI_Group_size(group, &members);
        CHECK_EQ(members, i < 3 ? size : 1);
        MPI_Group_free(&group);
    }
    CHECK_EQ(class_of(MPI_Group_from_session_pset(session, "mpi://WORLDS", &group)), MPI_ERR_ARG);
    MPI_Session_finalize(&session);
}

static void thread_levels(void) {
    const char *levels[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE",
                            "MPI_THREAD_DOUBLE", "3"};
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int i = 0; i < 6; i++) {
        MPI_Session session = MPI_SESSION_NULL;
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "thread_level", levels[i]);
        int code = MPI_Session_init(info, MPI_ERRORS_RETURN, &session);
        CHECK_EQ(class_of(code), i < 4 ? MPI_SUCCESS : MPI_ERR_INFO_VALUE);
        MPI_Info_free(&info);
        if (i < 4) MPI_Session_finalize(&session);
    }
}

// What the job asked for when it was started holds for a session that asks for nothing itself.
static void memory_kinds(void) {
    char job[100], own[100];
    int room = sizeof job, flag;
    MPI_Session session;
    MPI_Info info;
    MPI_Info_get_string(MPI_INFO_ENV, "mpi_memory_alloc_kinds", &room, job, &flag);
    CHECK(flag);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Session_get_info(session, &info);
    room = sizeof own;
    MPI_Info_get_string(info, "mpi_memory_alloc_kinds", &room, own, &flag);
    CHECK(flag);
    if (strcmp(job, own)) fprintf(stderr, "the job has %s, the session %s\n", job, own);
    CHECK(strcmp(job, own) == 0);
    MPI_Info_free(&info);
    MPI_Session_finalize(&session);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    datatypes();
    process_sets();
    thread_levels();
    memory_kinds();
    return finish();
}
