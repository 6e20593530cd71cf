// MPI_T events: what happens to a rank comes as callbacks on its own thread, when one of its calls has ended; what the
// rank's ring cannot keep is counted.
//# ranks: 2
//# progress: steal, none
// Messages between nodes make no event.
//# nodes: no
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

enum { MESSAGES = 10, FLOOD = 9000, LENGTH = 100 };

typedef struct {
    uint64_t source, tag, bytes;
} Arrival;

static int arrived, others, freed, inside, stolen;
static long long dropped;
static MPI_Count last;
static pthread_t own;
static MPI_T_event_instance kept;

// Of a message with this tag, some of no bytes.
static int length(int tag) {
    return tag % 3 ? LENGTH : 0;
}

static void on_arrival(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety,
                       void *data) {
    Arrival copy;
    uint64_t element;
    MPI_Count stamp, now;
    int source, size;
    CHECK(pthread_equal(pthread_self(), own));
    CHECK(data == &arrived && registration != NULL && safety == MPI_T_CB_REQUIRE_NONE);
    CHECK_EQ(inside++, 0);
    MPI_T_event_copy(instance, &copy);
    for (int index = 0; index < 3; index++) {
        CHECK_EQ(MPI_T_event_read(instance, index, &element), MPI_SUCCESS);
        CHECK(element == ((uint64_t *)&copy)[index]);
    }
    CHECK_EQ(MPI_T_event_read(instance, 3, &element), MPI_T_ERR_INVALID_INDEX);
    CHECK_EQ(MPI_T_event_get_source(instance, &source), MPI_SUCCESS);
    MPI_T_event_get_timestamp(instance, &stamp);
    MPI_T_source_get_timestamp(source, &now);
    CHECK(stamp <= now);
    last = stamp;
    // Anything may be called.
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK_EQ(size, 2);
    CHECK(copy.source == 1 && copy.tag < MESSAGES && copy.bytes == length(copy.tag) * sizeof(int));
    arrived++;
    kept = instance;
    inside--;
}

static void on_any(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety,
                   void *data) {
    uint64_t element;
    (void)registration, (void)safety;
    CHECK(pthread_equal(pthread_self(), own) && data == NULL);
    CHECK_EQ(MPI_T_event_read(instance, 0, &element), MPI_SUCCESS);
    others++;
}

static void on_dropped(MPI_Count count, MPI_T_event_registration registration, int source, MPI_T_cb_safety safety,
                       void *data) {
    (void)registration, (void)safety;
    CHECK(source == 0 && count > 0 && data == &arrived);
    dropped += count;
}

static void on_free(MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data) {
    (void)registration, (void)safety;
    CHECK(data == &freed);
    freed++;
}

static void types(void) {
    int count;
    MPI_T_event_get_num(&count);
    CHECK(count >= 6);
    for (int index = 0; index < count; index++) {
        char name[64], text[256];
        int name_length = sizeof name, text_length = sizeof text, elements = 8, verbosity, bind, again;
        MPI_Datatype kinds[8];
        MPI_Aint places[8];
        MPI_T_enum words;
        MPI_Info info;
        CHECK_EQ(MPI_T_event_get_info(index, name, &name_length, &verbosity, kinds, places, &elements, &words, &info,
                                      text, &text_length, &bind),
                 MPI_SUCCESS);
        CHECK(strncmp(name, "cohort_", 7) == 0 && text_length > 20 && elements >= 1 && elements <= 3);
        for (int element = 0; element < elements; element++)
            CHECK(kinds[element] == MPI_UNSIGNED_LONG_LONG && places[element] == 8 * element);
        CHECK(words == MPI_T_ENUM_NULL && info == MPI_INFO_NULL && bind == MPI_T_BIND_NO_OBJECT);
        MPI_T_event_get_index(name, &again);
        CHECK_EQ(again, index);
    }
    CHECK_EQ(MPI_T_event_get_index("cohort_none", &count), MPI_T_ERR_INVALID_NAME);
    char name[32];
    int length = sizeof name;
    MPI_T_source_order order;
    MPI_Count rate, most;
    CHECK_EQ(MPI_T_source_get_info(0, name, &length, NULL, NULL, &order, &rate, &most, NULL), MPI_SUCCESS);
    CHECK(order == MPI_T_SOURCE_UNORDERED && rate > 1000000 && strcmp(name, "cohort_clock") == 0);
    CHECK_EQ(MPI_T_source_get_info(1, name, &length, NULL, NULL, &order, &rate, &most, NULL),
             MPI_T_ERR_INVALID_INDEX);
}

static MPI_T_event_registration registered(const char *name, MPI_T_event_cb_function *function, void *data) {
    int index;
    MPI_T_event_registration registration;
    CHECK_EQ(MPI_T_event_get_index(name, &index), MPI_SUCCESS);
    CHECK_EQ(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &registration), MPI_SUCCESS);
    CHECK_EQ(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, data, function),
             MPI_SUCCESS);
    return registration;
}

static void talk(int rank, int count) {
    static int data[LENGTH];
    MPI_Request *requests = malloc(count * sizeof *requests);
    for (int message = 0; rank == 0 && message < count; message++)
        MPI_Irecv(data, LENGTH, MPI_INT, 1, message % MESSAGES, MPI_COMM_WORLD, &requests[message]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int message = 0; rank == 1 && message < count; message++) {
        int tag = message % MESSAGES;
        MPI_Send(data, length(tag), MPI_INT, 0, tag, MPI_COMM_WORLD);
    }
    if (rank == 0) MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    free(requests);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void on_level(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety,
                     void *data) {
    (void)instance, (void)registration;
    // What the call lets a callback do, not what this one was registered for.
    CHECK_EQ(safety, MPI_T_CB_REQUIRE_NONE);
    ++*(int *)data;
}

// A registration has a callback for each level of safety; that which needs the least is called.
static void levels(int rank) {
    static const MPI_T_cb_safety all[] = {MPI_T_CB_REQUIRE_NONE, MPI_T_CB_REQUIRE_MPI_RESTRICTED,
                                          MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE};
    int calls[4] = {0}, index, count = -1;
    MPI_T_event_registration handle;
    MPI_Info info;
    MPI_T_event_get_index("cohort_message_arrived", &index);
    CHECK_EQ(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &handle), MPI_SUCCESS);
    for (int level = 0; level < 4; level++) {
        int code = MPI_T_event_register_callback(handle, all[level], MPI_INFO_NULL, &calls[level], on_level);
        CHECK_EQ(code, MPI_SUCCESS);
        CHECK_EQ(MPI_T_event_callback_set_info(handle, all[level], MPI_INFO_NULL), MPI_SUCCESS);
        CHECK_EQ(MPI_T_event_callback_get_info(handle, all[level], &info), MPI_SUCCESS);
        MPI_Info_get_nkeys(info, &count);
        CHECK_EQ(count, 0);
        MPI_Info_free(&info);
    }
    CHECK_EQ(MPI_T_event_register_callback(handle, 12345, MPI_INFO_NULL, NULL, on_level), MPI_T_ERR_INVALID);
    CHECK_EQ(MPI_T_event_callback_set_info(handle, 12345, MPI_INFO_NULL), MPI_T_ERR_INVALID);
    CHECK_EQ(MPI_T_event_handle_set_info(handle, MPI_INFO_NULL), MPI_SUCCESS);
    CHECK_EQ(MPI_T_event_handle_get_info(handle, &info), MPI_SUCCESS);
    MPI_Info_free(&info);
    for (int level = 0; level < 4; level++) {
        talk(rank, MESSAGES);
        for (int other = 0; other < 4; other++) CHECK_EQ(calls[other], rank == 0 && other <= level ? MESSAGES : 0);
        MPI_T_event_register_callback(handle, all[level], MPI_INFO_NULL, NULL, NULL);
    }
    talk(rank, MESSAGES);
    CHECK_EQ(calls[3], rank == 0 ? MESSAGES : 0);
    CHECK_EQ(MPI_T_event_handle_free(handle, NULL, NULL), MPI_SUCCESS);
}

static void on_steal(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety,
                     void *data) {
    uint64_t of;
    (void)registration, (void)safety, (void)data;
    CHECK_EQ(MPI_T_event_read(instance, 0, &of), MPI_SUCCESS);
    CHECK_EQ(of, 0);
    stolen++;
}

// Rank 0 computes until its message has come, which rank 1 sees to while it waits.
static void steals(int rank) {
    static volatile char data[1 << 20];
    const char *policy = getenv("COHORT_PROGRESS");
    MPI_Request request;
    if (policy && strcmp(policy, "steal") != 0) return;
    MPI_T_event_registration handle = registered("cohort_steal", on_steal, NULL);
    int last = sizeof data - 1, done = 0;
    if (rank == 0) {
        MPI_Irecv((void *)data, sizeof data, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Send(&done, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
        while (!data[last]) sched_yield();
        MPI_Send(&done, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&done, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        data[last] = 1;
        MPI_Isend((void *)data, sizeof data, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Recv(&done, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(rank == 0 || stolen > 0);
    CHECK_EQ(MPI_T_event_handle_free(handle, NULL, NULL), MPI_SUCCESS);
}

int main(int argc, char **argv) {
    int level, rank;
    uint64_t element;
    MPI_T_event_registration arrivals = NULL, sleeps = NULL, unknown = (MPI_T_event_registration)12345;
    start(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    types();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    own = pthread_self();
    talk(rank, MESSAGES);
    if (rank == 0) {
        arrivals = registered("cohort_message_arrived", on_arrival, &arrived);
        CHECK_EQ(MPI_T_event_set_dropped_handler(arrivals, on_dropped), MPI_SUCCESS);
        sleeps = registered("cohort_sleep", on_any, NULL);
        CHECK_EQ(MPI_T_event_set_dropped_handler(unknown, on_dropped), MPI_T_ERR_INVALID_HANDLE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    talk(rank, MESSAGES);
    CHECK_EQ(arrived, rank == 0 ? MESSAGES : 0);
    CHECK_EQ(dropped, 0);
    if (rank == 0) CHECK_EQ(MPI_T_event_read(kept, 0, &element), MPI_T_ERR_INVALID_HANDLE);
    // More than are kept come within one call.
    talk(rank, FLOOD);
    if (rank == 0) {
        CHECK(dropped > 0 && arrived > MESSAGES && arrived + others + dropped >= MESSAGES + FLOOD);
        int before = arrived;
        CHECK_EQ(MPI_T_event_handle_free(arrivals, &freed, on_free), MPI_SUCCESS);
        CHECK_EQ(MPI_T_event_handle_free(sleeps, NULL, NULL), MPI_SUCCESS);
        CHECK_EQ(freed, 1);
        CHECK_EQ(MPI_T_event_handle_free(arrivals, &freed, on_free), MPI_T_ERR_INVALID_HANDLE);
        arrived = before;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    int before = arrived;
    talk(rank, MESSAGES);
    CHECK_EQ(arrived, before);
    levels(rank);
    steals(rank);
    // The end of the interface ends what is left.
    arrivals = registered("cohort_message_arrived", on_arrival, &arrived);
    MPI_T_finalize();
    talk(rank, MESSAGES);
    CHECK_EQ(arrived, before);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    CHECK_EQ(MPI_T_event_set_dropped_handler(arrivals, NULL), MPI_T_ERR_INVALID_HANDLE);
    MPI_T_finalize();
    return finish();
}
