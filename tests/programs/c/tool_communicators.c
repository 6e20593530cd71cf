// Performance variables of one communicator: they count what a tool has started, each handle for itself, and on its
// communicator only.
//# ranks: 2
//# progress: steal, none
#include "check.h"
#include <unistd.h>

enum { MESSAGES = 7, LENGTH = 100, HANDLES = 5 };

static const struct {
    const char *name;
    int class;
} variables[HANDLES] = {
    {"cohort_comm_calls", MPI_T_PVAR_CLASS_COUNTER},   {"cohort_comm_messages", MPI_T_PVAR_CLASS_COUNTER},
    {"cohort_comm_bytes", MPI_T_PVAR_CLASS_AGGREGATE}, {"cohort_comm_time", MPI_T_PVAR_CLASS_TIMER},
    {"cohort_comm_waiting", MPI_T_PVAR_CLASS_TIMER},
};

typedef struct {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handles[HANDLES];
} Followed;

static Followed follow(MPI_Comm comm) {
    Followed made;
    MPI_Comm none = MPI_COMM_NULL;
    CHECK_EQ(MPI_T_pvar_session_create(&made.session), MPI_SUCCESS);
    for (int i = 0; i < HANDLES; i++) {
        int index, elements, bind, class, verbosity, readonly, continuous, atomic;
        MPI_Datatype type;
        MPI_T_enum words;
        CHECK_EQ(MPI_T_pvar_get_index(variables[i].name, variables[i].class, &index), MPI_SUCCESS);
        MPI_T_pvar_get_info(index, NULL, NULL, &verbosity, &class, &type, &words, NULL, NULL, &bind, &readonly,
                            &continuous, &atomic);
        CHECK(class == variables[i].class && bind == MPI_T_BIND_MPI_COMM && !readonly && !continuous && atomic);
        CHECK(type == (class == MPI_T_PVAR_CLASS_TIMER ? MPI_DOUBLE : MPI_UNSIGNED_LONG_LONG));
        CHECK_EQ(MPI_T_pvar_handle_alloc(made.session, index, &none, &made.handles[i], &elements), MPI_T_ERR_INVALID);
        CHECK_EQ(MPI_T_pvar_handle_alloc(made.session, index, NULL, &made.handles[i], &elements), MPI_T_ERR_INVALID);
        CHECK_EQ(MPI_T_pvar_handle_alloc(made.session, index, &comm, &made.handles[i], &elements), MPI_SUCCESS);
        CHECK_EQ(elements, 1);
    }
    return made;
}

static unsigned long long counted(const Followed *followed, int variable) {
    unsigned long long value = ~0ULL;
    CHECK_EQ(MPI_T_pvar_read(followed->session, followed->handles[variable], &value), MPI_SUCCESS);
    return value;
}

static double seconds(const Followed *followed, int variable) {
    double value = -1;
    CHECK_EQ(MPI_T_pvar_read(followed->session, followed->handles[variable], &value), MPI_SUCCESS);
    return value;
}

// Rank 0 sends MESSAGES messages of each of several kinds, 5 in all with one to nobody, and rank 1 receives them. Calls
// of rank 0 are 1 for each and one Send_init, of rank 1 the receives.
static void talk(MPI_Comm comm) {
    static int data[LENGTH];
    MPI_Request requests[2];
    for (int message = 0; message < MESSAGES; message++) {
        if (rank == 0) {
            MPI_Send(data, LENGTH, MPI_INT, 1, 0, comm);
            MPI_Isend(data, LENGTH, MPI_INT, 1, 0, comm, &requests[0]);
            MPI_Send_init(data, LENGTH, MPI_INT, 1, 0, comm, &requests[1]);
            MPI_Start(&requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            MPI_Request_free(&requests[1]);
            MPI_Send(data, LENGTH, MPI_INT, MPI_PROC_NULL, 0, comm);
        } else {
            for (int part = 0; part < 3; part++) MPI_Recv(data, LENGTH, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
        }
    }
}

static void expect(const Followed *followed, int rounds) {
    CHECK_EQ(counted(followed, 0), rounds * MESSAGES * (rank == 0 ? 4ull : 3ull));
    CHECK_EQ(counted(followed, 1), rounds * MESSAGES * (rank == 0 ? 3ull : 0ull));
    CHECK_EQ(counted(followed, 2), rounds * MESSAGES * (rank == 0 ? 3ull : 0ull) * LENGTH * sizeof(int));
    CHECK(rounds == 0 || seconds(followed, 3) > 0);
    CHECK(seconds(followed, 3) >= seconds(followed, 4));
}

// Rank 0 is late by a time that rank 1 waits for, in a receive and for a request.
static void waits(const Followed *followed, MPI_Comm comm) {
    enum { LATE = 20000 };
    double before = seconds(followed, 4);
    int data = 0;
    for (int way = 0; way < 2; way++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            usleep(LATE);
            MPI_Send(&data, 1, MPI_INT, 1, 0, comm);
        } else if (way == 0) {
            MPI_Recv(&data, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Request request;
            MPI_Irecv(&data, 1, MPI_INT, 0, 0, comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        // A receive that began late waited for less, and on a busy machine that happens.
        double waited = seconds(followed, 4) - before;
        CHECK(rank == 1 ? waited > 0 : waited == 0);
        before += waited;
    }
}

int main(int argc, char **argv) {
    int level;
    unsigned long long value;
    start(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_Comm one, two;
    MPI_Comm_dup(MPI_COMM_WORLD, &one);
    MPI_Comm_dup(MPI_COMM_WORLD, &two);
    talk(one);
    Followed of_one = follow(one), of_two = follow(two), again = follow(one);
    talk(one);
    expect(&of_one, 0);
    for (int i = 0; i < HANDLES; i++) CHECK_EQ(MPI_T_pvar_start(of_one.session, of_one.handles[i]), MPI_SUCCESS);
    CHECK_EQ(MPI_T_pvar_start(of_two.session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
    talk(one);
    MPI_Barrier(MPI_COMM_WORLD);
    expect(&of_one, 1);
    expect(&of_two, 0);
    expect(&again, 0);
    CHECK_EQ(MPI_T_pvar_start(again.session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
    talk(two);
    talk(one);
    expect(&of_one, 2);
    expect(&of_two, 1);
    expect(&again, 1);
    CHECK_EQ(MPI_T_pvar_stop(of_one.session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
    talk(one);
    expect(&of_one, 2);
    expect(&again, 2);
    waits(&again, one);
    CHECK_EQ(MPI_T_pvar_readreset(of_one.session, of_one.handles[0], &value), MPI_SUCCESS);
    CHECK_EQ(value, 2 * MESSAGES * (rank == 0 ? 4ull : 3ull));
    CHECK_EQ(counted(&of_one, 0), 0ull);
    value = 5;
    CHECK_EQ(MPI_T_pvar_write(of_one.session, of_one.handles[0], &value), MPI_SUCCESS);
    CHECK_EQ(counted(&of_one, 0), 5ull);
    CHECK_EQ(MPI_T_pvar_reset(of_one.session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
    expect(&of_one, 0);
    // Another communicator may get the number of one that is gone.
    MPI_Comm_free(&two);
    MPI_Comm_dup(one, &two);
    talk(two);
    CHECK_EQ(counted(&of_two, 1), MESSAGES * (rank == 0 ? 3ull : 0ull));
    CHECK_EQ(MPI_T_pvar_handle_free(of_two.session, &of_two.handles[0]), MPI_SUCCESS);
    CHECK_EQ(MPI_T_pvar_write(of_one.session, of_one.handles[0], NULL), MPI_T_ERR_INVALID);
    CHECK_EQ(MPI_T_pvar_readreset(of_one.session, of_one.handles[0], NULL), MPI_T_ERR_INVALID);
    // A communicator that is not freed after all is still counted.
    MPI_Comm world = MPI_COMM_WORLD;
    Followed of_world = follow(world);
    CHECK_EQ(MPI_T_pvar_start(of_world.session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    CHECK_EQ(class_of(MPI_Comm_free(&world)), MPI_ERR_COMM);
    unsigned long long before = counted(&of_world, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(counted(&of_world, 0), before + 1);
    MPI_T_pvar_session_free(&of_world.session);
    MPI_T_pvar_session_free(&of_one.session);
    MPI_T_pvar_session_free(&of_two.session);
    MPI_T_pvar_session_free(&again.session);
    MPI_Comm_free(&one);
    MPI_Comm_free(&two);
    MPI_T_finalize();
    return finish();
}
