// `auto`: while both ranks compute nobody steals, and messages lie there until the receiver waits;
// so it turns the signal on, and messages are met while the rank computes. When messages come
// during waits only, nobody needs it, and it is turned off. A program that blocks the signal gets a
// helper instead. The decisions are performance variables. Under other policies nothing is decided.
// A machine that is busy with other things hides what is to be seen, so each phase goes on for as
// long as it takes.
//# ranks: 2
//# abi: mpi5
//# progress: auto, steal
//# nodes: no
//# timeout: 250
#include "check.h"
#include <sched.h>
#include <signal.h>
#include <unistd.h>
enum { LENGTH = 100000, WINDOW = 32, SECONDS_MAX = 60 };
static unsigned char buffer[LENGTH];

static unsigned long long counter(const char *name) {
    int provided, index, elements;
    unsigned long long value = 0;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    CHECK_EQ(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &elements);
    CHECK_EQ(MPI_T_pvar_read(session, handle, &value), MPI_SUCCESS);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return value;
}

static unsigned long long changes[2];

static void on_decision(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety,
                        void *data) {
    unsigned long long is_on = 2;
    (void)registration, (void)safety, (void)data;
    CHECK_EQ(MPI_T_event_read(instance, 0, &is_on), MPI_SUCCESS);
    if (is_on < 2) changes[is_on]++;
}

// Has the decisions told as events too.
static void follow_decisions(void) {
    int provided, index;
    MPI_T_event_registration registration;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    CHECK_EQ(MPI_T_event_get_index("cohort_policy", &index), MPI_SUCCESS);
    MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &registration);
    MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, on_decision);
}

// Where each rank is, for the other one's eyes: ranks of a node share their memory.
static volatile int place;

// Computes, that is: calls no MPI, until the other rank has come to a place.
static void compute_until(volatile int *other, int reached) {
    while (*other < reached) sched_yield();
}

// Rank 0 posts early and computes; the message comes while it computes (late for it), or after it
// has begun to wait. The sender does not wait before, since it would steal.
static void exchange(int computes) {
    static int round = 0;
    volatile int *mine = &place, *other;
    MPI_Request request;
    round++;
    MPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, 1 - rank, 1, &other, sizeof other, MPI_BYTE, 1 - rank, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0) {
        MPI_Irecv(buffer, LENGTH, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
        place = 2 * round;
        if (computes) compute_until(other, 2 * round);
        place = 2 * round + 1;
    } else {
        compute_until(other, 2 * round + !computes);
        if (!computes) usleep(1000);
        memset(buffer, round, LENGTH);
        MPI_Isend(buffer, LENGTH, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
        place = 2 * round;
        compute_until(other, 2 * round + 1);
        usleep(200);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 0)
        for (int i = 0; i < LENGTH; i++) CHECK_EQ(buffer[i], (unsigned char)round);
}

// Whether rank 0 wants to go on.
static int go_on(int wanted) {
    MPI_Bcast(&wanted, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return wanted;
}

// Exchanges messages until a counter of rank 0 is at least another one and not 0; as many on both ranks.
static void until_reached(const char *name, const char *least, int computes) {
    double begin = MPI_Wtime();
    for (int goes_on = 1; goes_on;) {
        for (int round = 0; round < WINDOW; round++) exchange(computes);
        goes_on = go_on(counter(name) == 0 || counter(name) < counter(least));
        CHECK(!goes_on || MPI_Wtime() - begin < SECONDS_MAX);
    }
}

int main(int argc, char **argv) {
    const char *policy = getenv("COHORT_PROGRESS");
    start(&argc, &argv);
    follow_decisions();
    if (policy && strcmp(policy, "auto") == 0) {
        until_reached("cohort_auto_turned_on", "cohort_auto_turned_on", 1);
        until_reached("cohort_auto_helped", "cohort_auto_turned_on", 1);
        until_reached("cohort_auto_turned_off", "cohort_auto_turned_on", 0);
        CHECK_EQ(counter("cohort_auto_helper_chosen"), 0ull);
        sigset_t all, before;
        sigfillset(&all);
        CHECK_EQ(sigprocmask(SIG_BLOCK, &all, &before), 0);
        until_reached("cohort_auto_helper_chosen", "cohort_auto_helper_chosen", 1);
        unsigned long long turns = counter("cohort_own_hits");
        while (go_on(counter("cohort_own_hits") == turns)) exchange(1);
        CHECK_EQ(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    } else {
        for (int round = 0; round < 2 * WINDOW; round++) exchange(1);
        CHECK_EQ(counter("cohort_auto_turned_on"), 0ull);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(changes[1], counter("cohort_auto_turned_on"));
    CHECK_EQ(changes[0], counter("cohort_auto_turned_off"));
    return finish();
}
