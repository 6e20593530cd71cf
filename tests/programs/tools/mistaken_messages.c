// As mistakes.c, of messages: mistaken_messages MODE, with 3 ranks. Tests: check/.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "modes.h"

static int rank, size;

static void send(const void *data, int count, MPI_Datatype type, int to, int tag)
{
    MPI_Send(data, count, type, to, tag, MPI_COMM_WORLD);
}

static void receive(void *data, int count, MPI_Datatype type, int from, int tag)
{
    MPI_Recv(data, count, type, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Messages that are never received.
static void unreceived_tag(void)
{
    int data[2] = {1, 2};
    if (rank == 2) {
        send(data, 2, MPI_INT, 0, 3);
        send(data, 1, MPI_INT, 0, 4);
    } else if (rank == 0) {
        receive(data, 1, MPI_INT, 2, 4);
    }
}

static void unreceived_on_copy(void)
{
    MPI_Comm copy;
    MPI_Request request;
    static double data;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    if (rank == 1) {
        MPI_Isend(&data, 1, MPI_DOUBLE, 0, 0, copy, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&copy);
}

static void unreceived_own(void)
{
    char text[] = "nobody";
    MPI_Send(text, 7, MPI_CHAR, 0, 1, MPI_COMM_SELF);
}

// Types that differ.
static void types_float(void)
{
    float out[3] = {1, 2, 3};
    int in[3];
    if (rank == 0)
        send(out, 3, MPI_FLOAT, 1, 0);
    if (rank == 1)
        receive(in, 3, MPI_INT, 0, 0);
}

static void types_any_source(void)
{
    long out = 1;
    double in[4];
    MPI_Status status;
    if (rank == 1)
        send(&out, 1, MPI_LONG, 0, 0);
    if (rank == 0)
        MPI_Recv(in, 4, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
}

static void types_persistent(void)
{
    unsigned out[4] = {0};
    int in[4];
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0)
        MPI_Send_init(out, 4, MPI_UNSIGNED, 2, 0, MPI_COMM_WORLD, &request);
    else if (rank == 2)
        MPI_Recv_init(in, 4, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
    if (request == MPI_REQUEST_NULL)
        return;
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

// Bytes that meet other types.
static void bytes_sent(void)
{
    int data[4] = {0};
    if (rank == 0)
        send(data, sizeof data, MPI_BYTE, 1, 0);
    if (rank == 1)
        receive(data, 4, MPI_INT, 0, 0);
}

static void bytes_received(void)
{
    double data[4] = {0};
    MPI_Request request;
    if (rank == 1) {
        MPI_Irecv(data, sizeof data, MPI_BYTE, 2, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (rank == 2)
        send(data, 4, MPI_DOUBLE, 1, 0);
}

static void bytes_exchanged(void)
{
    int out = rank, in;
    if (rank < 2)
        MPI_Sendrecv(&out, 1, MPI_INT, 1 - rank, 0, &in, 4, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Deadlocks that buffers hide.
static void circle_of_two(void)
{
    int out = rank, in;
    if (rank > 1)
        return;
    MPI_Request request;
    MPI_Isend(&out, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    receive(&in, 1, MPI_INT, 1 - rank, 0);
}

static void circle_of_one(void)
{
    int out = 1, in;
    send(&out, 1, MPI_INT, rank, 0);
    receive(&in, 1, MPI_INT, rank, 0);
}

static void circle_with_barrier(void)
{
    int data = 0;
    if (rank == 0)
        send(&data, 1, MPI_INT, 1, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        receive(&data, 1, MPI_INT, 0, 0);
}

// Receives whose source is a matter of time.
static void any_in_loop(void)
{
    double result = 1, part = rank + 0.5;
    if (rank)
        send(&part, 1, MPI_DOUBLE, 0, 0);
    for (int i = 1; rank == 0 && i < size; i++) {
        receive(&part, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 0);
        result = result / part;
    }
}

static void any_pending(void)
{
    int in[2], out = 10 * rank;
    MPI_Request requests[2];
    if (rank)
        send(&out, 1, MPI_INT, 0, rank);
    for (int i = 0; rank == 0 && i < 2; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[i]);
    if (rank == 0)
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void any_then_named(void)
{
    int in = 0, out = rank;
    if (rank == 1) {
        receive(&in, 1, MPI_INT, 0, 0);
        receive(&in, 1, MPI_INT, MPI_ANY_SOURCE, 7);
        send(&in, 1, MPI_INT, 0, 1);
        receive(&in, 1, MPI_INT, MPI_ANY_SOURCE, 7);
    } else {
        send(&out, 1, MPI_INT, 1, 7);
    }
    if (rank == 0) {
        send(&out, 1, MPI_INT, 1, 0);
        receive(&in, 1, MPI_INT, 1, 1);
    }
}

// A receive from any source takes rank 2's message here, and could take rank 1's, which a later receive names. Rank 1
// sends when it sees in memory that the other one was taken, of which MPI does not know.
static volatile int is_taken;

static void second_sender(int count)
{
    long flag;
    int out = 5;
    receive(&flag, 1, MPI_LONG, 0, 0);
    while (!*(volatile int *)flag)
        sched_yield();
    for (int i = 0; i < count; i++)
        send(&out, 1, MPI_INT, 0, 4);
}

static void tell_second_sender(void)
{
    long flag = (long)&is_taken;
    is_taken = 0;
    send(&flag, 1, MPI_LONG, 1, 0);
}

static void named_after_any(void)
{
    int in, out = 5;
    if (rank == 0) {
        tell_second_sender();
        receive(&in, 1, MPI_INT, MPI_ANY_SOURCE, 4);
        is_taken = 1;
        receive(&in, 1, MPI_INT, 1, 4);
    } else if (rank == 1) {
        second_sender(1);
    } else {
        send(&out, 1, MPI_INT, 0, 4);
    }
}

static void named_after_status(void)
{
    int in, out = 5;
    MPI_Status status;
    if (rank == 0) {
        tell_second_sender();
        MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        is_taken = 1;
        for (int i = 0; i < 2; i++)
            MPI_Recv(&in, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, &status);
    } else if (rank == 1) {
        second_sender(2);
    } else {
        send(&out, 1, MPI_INT, 0, 4);
    }
}

static void named_after_pending(void)
{
    int in[2], out = 5;
    MPI_Request requests[2];
    if (rank == 0) {
        tell_second_sender();
        MPI_Irecv(&in[0], 1, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        is_taken = 1;
        MPI_Irecv(&in[1], 1, MPI_INT, 1, 4, MPI_COMM_WORLD, &requests[1]);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        second_sender(1);
    } else {
        send(&out, 1, MPI_INT, 0, 4);
    }
}

// Nothing wrong: what a receive from any source could have taken, another such receive takes, or it is ordered behind.
static void right_orders(void)
{
    int in, out = 5;
    if (rank == 0) {
        tell_second_sender();
        receive(&in, 1, MPI_INT, MPI_ANY_SOURCE, 4);
        is_taken = 1;
        receive(&in, 1, MPI_INT, MPI_ANY_SOURCE, 4);
        receive(&in, 1, MPI_INT, 1, 4);
        receive(&in, 1, MPI_INT, MPI_ANY_SOURCE, 6);
    } else if (rank == 1) {
        second_sender(2);
    } else {
        send(&out, 1, MPI_INT, 0, 4);
        send(&out, 1, MPI_INT, 0, 6);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        receive(&in, 1, MPI_INT, 1, 6);
    if (rank == 1)
        send(&out, 1, MPI_INT, 0, 6);
}

// Nothing wrong.
static void right_ring(void)
{
    int out = rank, in, next = (rank + 1) % size, last = (rank + size - 1) % size;
    if (rank == 0) {
        send(&out, 1, MPI_INT, next, 0);
        receive(&in, 1, MPI_INT, last, 0);
    } else {
        receive(&in, 1, MPI_INT, last, 0);
        send(&out, 1, MPI_INT, next, 0);
    }
    MPI_Sendrecv(&out, 1, MPI_INT, next, 1, &in, 1, MPI_INT, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(&out, 1, MPI_INT, next, 2, last, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Request request;
    MPI_Irecv(&in, 1, MPI_INT, last, 3, MPI_COMM_WORLD, &request);
    send(&out, 1, MPI_INT, next, 3);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void right_farm(void)
{
    // The farmer knows who has answered.
    enum { TASKS = 20, TASK = 1, END = 2 };
    int task = 0, answer = 0, busy = 0;
    MPI_Status status;
    if (rank) {
        for (;;) {
            MPI_Recv(&task, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            if (status.MPI_TAG == END)
                return;
            send(&task, 1, MPI_INT, 0, TASK);
        }
    }
    for (int worker = 1; worker < size; worker++, task++, busy++)
        send(&task, 1, MPI_INT, worker, TASK);
    while (busy) {
        MPI_Recv(&answer, 1, MPI_INT, MPI_ANY_SOURCE, TASK, MPI_COMM_WORLD, &status);
        int more = task < TASKS;
        send(&task, 1, MPI_INT, status.MPI_SOURCE, more ? TASK : END);
        task += more;
        busy -= !more;
    }
}

static void right_types(void)
{
    // A receive may be longer, types may be nested otherwise, and packed data is of any type.
    struct { int a; double b; } out[2] = {{1, 2}, {3, 4}}, in[3];
    char packed[100];
    int lengths[2] = {1, 1}, at = 0;
    MPI_Aint places[2] = {0, (char *)&out[0].b - (char *)&out[0]};
    MPI_Datatype parts[2] = {MPI_INT, MPI_DOUBLE}, one, two;
    MPI_Type_create_struct(2, lengths, places, parts, &one);
    MPI_Type_contiguous(2, one, &two);
    MPI_Type_commit(&one);
    MPI_Type_commit(&two);
    if (rank == 0) {
        send(out, 1, two, 1, 0);
        MPI_Pack(out, 2, one, packed, sizeof packed, &at, MPI_COMM_WORLD);
        send(packed, at, MPI_PACKED, 1, 1);
    } else if (rank == 1) {
        receive(in, 3, one, 0, 0);
        receive(in, 2, one, 0, 1);
    }
    MPI_Type_free(&one);
    MPI_Type_free(&two);
}

static void never_matched(void)
{
    int in, out = 5;
    if (rank == 0)
        MPI_Send(&out, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Recv(&in, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// A signal to the launcher, which passes it on, ends nothing: what comes after it is looked at.
static volatile sig_atomic_t has_come;

static void comes(int signal)
{
    has_come = signal;
}

static void after_a_signal(void)
{
    int both = 1;
    signal(SIGUSR1, comes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        kill(getppid(), SIGUSR1);
    while (!has_come)
        sched_yield();
    MPI_Sendrecv(&both, 1, MPI_INT, rank, 1, &both, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void busy_at_abort(void)
{
    int both = 1, in, out = 2;
    MPI_Sendrecv(&both, 1, MPI_INT, rank, 1, &both, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    for (;;)
        MPI_Sendrecv(&out, 1, MPI_INT, rank, 1, &in, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void right_open(void)
{
    // Who is first does not matter: the data is the same, or the order is known.
    int in, out = 5;
    if (rank)
        send(&out, 1, MPI_INT, 0, 0);
    for (int i = 1; rank == 0 && i < size; i++)
        receive(&in, 1, MPI_INT, MPI_ANY_SOURCE, 0);
    for (int turn = 1; turn < size; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == turn)
            send(&rank, 1, MPI_INT, 0, 1);
        if (rank == 0)
            receive(&in, 1, MPI_INT, MPI_ANY_SOURCE, 1);
    }
}

static void right_probed(void)
{
    int in, flag = 0;
    MPI_Status status;
    MPI_Message message;
    if (rank == 1)
        for (int tag = 0; tag < 3; tag++)
            send(&tag, 1, MPI_INT, 0, tag);
    if (rank == 0) {
        MPI_Probe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
        receive(&in, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG);
        MPI_Mprobe(1, MPI_ANY_TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        while (!flag)
            MPI_Improbe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &flag, &message, &status);
        MPI_Request request;
        MPI_Imrecv(&in, 1, MPI_INT, &message, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

// It comes again more often than the checker follows.
static void circle_for_long(void)
{
    int out = rank, in;
    for (int i = 0; rank < 2 && i < 13000; i++) {
        send(&out, 1, MPI_INT, 1 - rank, 0);
        receive(&in, 1, MPI_INT, 1 - rank, 0);
    }
}

static const struct mode modes[] = {
    MODE(unreceived_tag), MODE(unreceived_on_copy),  MODE(unreceived_own), MODE(types_float),   MODE(types_any_source),
    MODE(types_persistent), MODE(bytes_sent),        MODE(bytes_received), MODE(bytes_exchanged), MODE(circle_of_two),
    MODE(circle_of_one),  MODE(circle_with_barrier), MODE(any_in_loop),    MODE(any_pending),   MODE(any_then_named),
    MODE(right_ring),     MODE(right_farm),          MODE(right_types),    MODE(right_open),    MODE(right_probed),
    MODE(never_matched),  MODE(busy_at_abort),       MODE(right_orders),   MODE(named_after_any),
    MODE(circle_for_long), MODE(after_a_signal), MODE(named_after_status), MODE(named_after_pending),
};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    return run(modes, sizeof modes / sizeof *modes, argc > 1 ? argv[1] : "", &rank, &size);
}
