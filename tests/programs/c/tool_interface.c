// MPI_T lists and reads our settings and counters, by index and by name, in categories, before
// MPI_Init and after MPI_Finalize.
//# ranks: 1 2
//# progress: steal, none
#include "check.h"

static const char *progress(void) {
    const char *given = getenv("COHORT_PROGRESS");
    return given ? given : "steal";
}

static void control_variables(void) {
    int count, seen = 0;
    CHECK_EQ(MPI_T_cvar_get_num(&count), MPI_SUCCESS);
    CHECK(count > 5);
    for (int index = 0; index < count; index++) {
        char name[64], text[256], word[64], value[256] = "";
        int name_length = sizeof name, text_length = sizeof text, word_length = sizeof word;
        int verbosity, bind, scope, again, elements, number = -1;
        MPI_Datatype type;
        MPI_T_enum words;
        MPI_T_cvar_handle handle;
        MPI_T_cvar_get_info(index, name, &name_length, &verbosity, &type, &words, text,
                            &text_length, &bind, &scope);
        CHECK_EQ(name_length, strlen(name) + 1);
        CHECK(strncmp(name, "COHORT_", 7) == 0 && text_length > 10);
        CHECK(bind == MPI_T_BIND_NO_OBJECT && scope == MPI_T_SCOPE_CONSTANT);
        CHECK_EQ(MPI_T_cvar_get_index(name, &again), MPI_SUCCESS);
        CHECK_EQ(again, index);
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &elements);
        if (words == MPI_T_ENUM_NULL) {
            CHECK(type == MPI_CHAR && elements <= (int)sizeof value);
            MPI_T_cvar_read(handle, value);
            CHECK_EQ(strlen(value) + 1, elements);
        } else {
            CHECK(type == MPI_INT && elements == 1);
            MPI_T_cvar_read(handle, &number);
            MPI_T_enum_get_item(words, number, &again, word, &word_length);
            CHECK_EQ(again, number);
            strcpy(value, word);
        }
        if (strcmp(name, "COHORT_PROGRESS") == 0) {
            CHECK(strcmp(value, progress()) == 0);
            seen++;
        }
        CHECK_EQ(MPI_T_cvar_write(handle, value), MPI_T_ERR_CVAR_SET_NEVER);
        MPI_T_cvar_handle_free(&handle);
        CHECK(handle == MPI_T_CVAR_HANDLE_NULL);
    }
    CHECK_EQ(seen, 1);
    const char *families[] = {"BARRIER", "BCAST", "GATHER", "SCATTER", "ALLGATHER", "ALLTOALL", "REDUCE",
                              "ALLREDUCE", "REDUCE_SCATTER", "SCAN"};
    for (int family = 0; family < 10; family++) {
        char name[64];
        snprintf(name, sizeof name, "COHORT_%s", families[family]);
        CHECK_EQ(MPI_T_cvar_get_index(name, &count), MPI_SUCCESS);
    }
    CHECK_EQ(MPI_T_cvar_get_index("COHORT_NONE", &count), MPI_T_ERR_INVALID_NAME);
}

static unsigned long long read_counter(MPI_T_pvar_session session, const char *name) {
    int index, elements;
    unsigned long long value = ~0ULL;
    MPI_T_pvar_handle handle;
    CHECK_EQ(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
    CHECK_EQ(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &elements), MPI_SUCCESS);
    CHECK_EQ(elements, 1);
    CHECK_EQ(MPI_T_pvar_read(session, handle, &value), MPI_SUCCESS);
    CHECK_EQ(MPI_T_pvar_start(session, handle), MPI_T_ERR_PVAR_NO_STARTSTOP);
    CHECK_EQ(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
    CHECK_EQ(MPI_T_pvar_reset(session, handle), MPI_T_ERR_PVAR_NO_WRITE);
    CHECK_EQ(MPI_T_pvar_handle_free(session, &handle), MPI_SUCCESS);
    CHECK(handle == MPI_T_PVAR_HANDLE_NULL);
    return value;
}

static void performance_variables(void) {
    MPI_T_pvar_session session, other;
    int count, bind, class, verbosity, readonly, continuous, atomic, length = 8;
    char name[8];
    MPI_Datatype type;
    MPI_T_enum words;
    MPI_T_pvar_get_num(&count);
    CHECK(count >= 12);
    // A name that does not fit is cut, and its length is told.
    MPI_T_pvar_get_info(0, name, &length, &verbosity, &class, &type, &words, NULL, NULL, &bind,
                        &readonly, &continuous, &atomic);
    CHECK(strlen(name) == 7 && length > 8);
    CHECK(class == MPI_T_PVAR_CLASS_COUNTER && type == MPI_UNSIGNED_LONG_LONG);
    CHECK(readonly && continuous && !atomic);
    MPI_T_pvar_session_create(&session);
    unsigned long long attempts = read_counter(session, "cohort_steal_shm_attempts");
    unsigned long long hits = read_counter(session, "cohort_steal_shm_hits");
    unsigned long long later = read_counter(session, "cohort_steal_shm_attempts");
    CHECK(attempts <= later && hits <= later);
    if (strcmp(progress(), "none") == 0) CHECK_EQ(later, 0);
    MPI_T_pvar_session_create(&other);
    MPI_T_pvar_handle handle;
    MPI_T_pvar_handle_alloc(session, 0, NULL, &handle, &count);
    CHECK_EQ(MPI_T_pvar_read(other, handle, &later), MPI_T_ERR_INVALID_HANDLE);
    MPI_T_pvar_session_free(&other);
    MPI_T_pvar_session_free(&session);
    CHECK_EQ(MPI_T_pvar_session_free(&session), MPI_T_ERR_INVALID_SESSION);
}

/* Reads and writes that have ended, whoever has done them. */
static void files(void) {
    static char data[100000];
    MPI_T_pvar_session session;
    MPI_File file;
    MPI_Request request;
    MPI_T_pvar_session_create(&session);
    CHECK_EQ(read_counter(session, "cohort_file_writes"), 0);
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_SUCCESS);
    MPI_File_write_at(file, 0, data, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_iwrite_at_all(file, 0, data, sizeof data, MPI_BYTE, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_read_all(file, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK_EQ(read_counter(session, "cohort_file_writes"), 2);
    CHECK_EQ(read_counter(session, "cohort_file_written_bytes"), 10 + sizeof data);
    CHECK_EQ(read_counter(session, "cohort_file_reads"), 1);
    CHECK_EQ(read_counter(session, "cohort_file_read_bytes"), 0);
    MPI_File_close(&file);
    MPI_T_pvar_session_free(&session);
}

static void categories(void) {
    int count, cvars, pvars, inner, indices[64], all_cvars = 0, all_pvars = 0;
    MPI_T_category_get_num(&count);
    for (int index = 0; index < count; index++) {
        MPI_T_category_get_info(index, NULL, NULL, NULL, NULL, &cvars, &pvars, &inner);
        all_cvars += cvars;
        all_pvars += pvars;
        MPI_T_category_get_cvars(index, 64, indices);
        for (int i = 0; i < cvars; i++) CHECK_EQ(indices[i], i);
        MPI_T_category_get_categories(index, 64, indices);
        for (int i = 0; i < inner; i++) CHECK(indices[i] > index && indices[i] < count);
    }
    MPI_T_cvar_get_num(&cvars);
    MPI_T_pvar_get_num(&pvars);
    CHECK(all_cvars == cvars && all_pvars == pvars);
    int events, inside, all_events = 0;
    for (int index = 0; index < count; index++) {
        MPI_T_category_get_num_events(index, &inside);
        MPI_T_category_get_events(index, 64, indices);
        for (int i = 0; i < inside; i++) CHECK_EQ(indices[i], i);
        all_events += inside;
    }
    MPI_T_event_get_num(&events);
    CHECK_EQ(all_events, events);
    CHECK_EQ(MPI_T_category_get_info(99, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
             MPI_T_ERR_INVALID_INDEX);
}

int main(int argc, char **argv) {
    int level, count;
    CHECK_EQ(MPI_T_cvar_get_num(&count), MPI_T_ERR_NOT_INITIALIZED);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    control_variables();
    start(&argc, &argv);
    control_variables();
    performance_variables();
    files();
    categories();
    char text[MPI_MAX_ERROR_STRING];
    MPI_Error_string(MPI_T_ERR_CVAR_SET_NEVER, text, &count);
    CHECK(strstr(text, "MPI_T_ERR_CVAR_SET_NEVER") != NULL);
    int code = finish();
    performance_variables();
    MPI_T_finalize();
    return code;
}
