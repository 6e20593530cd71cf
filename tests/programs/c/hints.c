// Hints of communicators: known ones are kept and reported, others are ignored, duplicates begin without
// (MPI 4.1 7.4.4), and a broken promise is an error. Kinds of memory (MPI 4.1 11.4.3).
//# ranks: 2
//# abi: mpich mpi5 openmpi
#include "check.h"

static const char *value_of(MPI_Info info, const char *key) {
    static char value[256];
    int room = sizeof value, flag;
    MPI_Info_get_string(info, key, &room, value, &flag);
    return flag ? value : "(none)";
}

static const char *hint(MPI_Comm comm, const char *key) {
    MPI_Info info;
    MPI_Comm_get_info(comm, &info);
    const char *value = value_of(info, key);
    MPI_Info_free(&info);
    return value;
}

#define CHECK_HINT(comm, key, expected) CHECK(strcmp(hint(comm, key), expected) == 0)

static void promises(void) {
    MPI_Comm mine, copy;
    MPI_Info info;
    int data = 0;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    MPI_Info_set(info, "mpi_assert_exact_length", "perhaps");
    MPI_Info_set(info, "no_such_hint", "true");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &mine);
    CHECK_HINT(mine, "mpi_assert_no_any_tag", "true");
    CHECK_HINT(mine, "mpi_assert_exact_length", "false");
    CHECK_HINT(mine, "no_such_hint", "(none)");
    CHECK_HINT(MPI_COMM_WORLD, "mpi_assert_no_any_tag", "false");
    MPI_Info_delete(info, "mpi_assert_no_any_tag");
    MPI_Info_set(info, "mpi_assert_no_any_source", "true");
    MPI_Comm_set_info(mine, info);
    CHECK_HINT(mine, "mpi_assert_no_any_tag", "true");
    CHECK_HINT(mine, "mpi_assert_no_any_source", "true");
    CHECK_HINT(mine, "cohort_progress", getenv("COHORT_PROGRESS") ? getenv("COHORT_PROGRESS") : "steal");
    MPI_Info_free(&info);

    MPI_Comm_set_errhandler(mine, MPI_ERRORS_RETURN);
    CHECK_EQ(class_of(MPI_Recv(&data, 1, MPI_INT, 0, MPI_ANY_TAG, mine, MPI_STATUS_IGNORE)), MPI_ERR_TAG);
    CHECK_EQ(class_of(MPI_Probe(MPI_ANY_SOURCE, 0, mine, MPI_STATUS_IGNORE)), MPI_ERR_RANK);
    MPI_Sendrecv_replace(&data, 1, MPI_INT, 1 - rank, 3, 1 - rank, 3, mine, MPI_STATUS_IGNORE);
    MPI_Comm_dup(mine, &copy);
    CHECK_HINT(copy, "mpi_assert_no_any_tag", "false");
    MPI_Comm_free(&copy);
    MPI_Comm_free(&mine);
}

// What MPI_Win_set_info does not name stays.
static void of_windows(void) {
    MPI_Info info, now;
    MPI_Win win;
    int part = 0;
    MPI_Info_create(&info);
    MPI_Info_set(info, "same_size", "true");
    MPI_Info_set(info, "no_locks", "true");
    MPI_Win_create(&part, sizeof part, 1, info, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Info_delete(info, "no_locks");
    MPI_Info_set(info, "accumulate_ops", "same_op");
    MPI_Win_set_info(win, info);
    MPI_Win_get_info(win, &now);
    CHECK(strcmp(value_of(now, "same_size"), "true") == 0);
    CHECK(strcmp(value_of(now, "no_locks"), "true") == 0);
    CHECK(strcmp(value_of(now, "accumulate_ops"), "same_op") == 0);
    CHECK(strcmp(value_of(now, "same_disp_unit"), "false") == 0);
    MPI_Info_free(&now);
    int refused;
    MPI_Error_class(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), &refused);
    CHECK_EQ(refused, MPI_ERR_RMA_SYNC);
    MPI_Info_set(info, "no_locks", "false");
    MPI_Win_set_info(win, info);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_SUCCESS);
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
    MPI_Info_free(&info);
}

static void memory(void) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm, part;
    MPI_Info info, env;
    CHECK_HINT(MPI_COMM_WORLD, "mpi_memory_alloc_kinds", "mpi,system");
    MPI_Info_create_env(0, NULL, &env);
    CHECK(strcmp(value_of(env, "mpi_memory_alloc_kinds"), "mpi,system") == 0);
    MPI_Info_free(&env);

    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_memory_alloc_kinds", "system,cuda:device,mpi:alloc_mem");
    MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Info_free(&info);
    MPI_Session_get_info(session, &info);
    CHECK(strcmp(value_of(info, "mpi_memory_alloc_kinds"), "system,mpi:alloc_mem,mpi") == 0);
    MPI_Info_free(&info);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "hints", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Comm_split(comm, 0, rank, &part);
    CHECK_HINT(part, "mpi_memory_alloc_kinds", "system,mpi:alloc_mem,mpi");
    MPI_Comm_free(&part);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}

// A loop over all keys, with buffers of the header's lengths, finds each of them.
static void read_all(MPI_Comm comm) {
    MPI_Info info;
    int count;
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get_nkeys(info, &count);
    for (int i = 0; i < count; i++) {
        char key[MPI_MAX_INFO_KEY + 1];
        MPI_Info_get_nthkey(info, i, key);
        CHECK(strcmp(value_of(info, key), "(none)"));
    }
    MPI_Info_free(&info);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    promises();
    of_windows();
    memory();
    read_all(MPI_COMM_WORLD);
    return finish();
}
