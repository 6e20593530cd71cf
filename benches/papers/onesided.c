/* Epochs of windows (SmartInterrupts figs. 10 to 14): with 2 ranks, or 4 of which two only wait, fences and
   post-start-complete-wait, as the target sees them; with 3 ranks exclusive locks, as the second
   origin sees them. First the duration of an epoch with one put. Then the partner comes late, so
   that the origin computes before its put can go: for that delay, and then twice as long as the
   longest epoch took. What is shown is the time beyond the origin's computation, from the beginning of the round until
   the epoch has ended at the rank that measures; with progress all lengths are alike. An origin that waits for the late
   target before it computes adds the delay. All ranks begin a round at a time that they have agreed on: if each counted
   from when it left a barrier, a target that leaves it later than its origin would see a part of the computation only,
   and print less than nothing. (All ranks read the same clock, also those of two network namespaces.) */
#define _GNU_SOURCE
#include "pair.h"
#include <sched.h>
enum { ROUNDS = 60, LATE_US = 50, HOLD_US = 100, LEAD_US = 60, TARGET = 0, ORIGIN = 1, HOLDER = 2 };
static MPI_Win win;
static MPI_Comm comm;
static MPI_Group partner;
static int length;
static double work, late, begun;

static void put(void) {
    MPI_Put(buffer, length, MPI_BYTE, TARGET, 0, length, MPI_BYTE, win);
    compute_us(work);
}

/* The next round begins for all members at once. */
static void agree(void) {
    MPI_Barrier(comm);
    begun = now_us() + LEAD_US;
    MPI_Bcast(&begun, 1, MPI_DOUBLE, TARGET, comm);
    while (now_us() < begun) continue;
}

/* Each returns the duration of one epoch at the rank that measures. */
static double fence(void) {
    if (rank == TARGET) compute_us(late);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    if (rank == ORIGIN) put();
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    return now_us() - begun;
}

static double gats(void) {
    if (rank == TARGET) compute_us(late);
    if (rank == TARGET) {
        MPI_Win_post(partner, 0, win);
        MPI_Win_wait(win);
    } else {
        MPI_Win_start(partner, 0, win);
        put();
        MPI_Win_complete(win);
    }
    return now_us() - begun;
}

/* The holder has the lock, which MPI may fetch late, when the origin asks for it, and gives it back
   while the origin computes. */
static double hold(void) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, win);
    MPI_Put(buffer, 1, MPI_BYTE, TARGET, 0, 1, MPI_BYTE, win);
    MPI_Win_flush(TARGET, win);
    MPI_Send(NULL, 0, MPI_BYTE, ORIGIN, 0, MPI_COMM_WORLD);
    compute_us(late);
    MPI_Win_unlock(TARGET, win);
    return 0;
}

static double lock(void) {
    if (rank == HOLDER && late > 0) return hold();
    if (rank != ORIGIN) return 0;
    if (late > 0) MPI_Recv(NULL, 0, MPI_BYTE, HOLDER, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double start = now_us();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, win);
    put();
    MPI_Win_unlock(TARGET, win);
    return now_us() - start;
}

/* The origin has a CPU of its own: a partner that computes on it would come late itself. */
static void pin(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* Durations less the computation; all members get them. */
static struct spread repeat(double (*epoch)(void), int measurer) {
    double times[ROUNDS];
    struct spread all;
    for (int round = 0; round < ROUNDS; round++) {
        agree();
        times[round] = epoch() - work;
    }
    all = spread_of(times, ROUNDS);
    MPI_Bcast(&all, 3, MPI_DOUBLE, measurer, comm);
    return all;
}

static void measure(const char *name, double (*epoch)(void), int measurer, double delay) {
    double longest = 0;
    char series[64];
    work = late = 0;
    snprintf(series, sizeof series, "%s-duration", name);
    for (int i = 0; i < LENGTHS; i++) {
        length = lengths[i];
        struct spread took = repeat(epoch, measurer);
        longest = took.median;
        if (rank == 0) show(series, length >> 10, took);
    }
    snprintf(series, sizeof series, "%s-beyond-computation", name);
    for (int i = 0; i < LENGTHS; i++) {
        length = lengths[i];
        work = delay + 2 * longest;
        late = delay;
        struct spread beyond = repeat(epoch, measurer);
        if (rank == 0) show(series, length >> 10, beyond);
    }
}

static int end(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&comm);
    return MPI_Finalize();
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    int size, other = 1 - rank;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int waits = size == 4 && rank >= 2;
    MPI_Comm_split(MPI_COMM_WORLD, waits, rank, &comm);
    if (waits) return end();
    MPI_Win_create(buffer, LONGEST, 1, MPI_INFO_NULL, comm, &win);
    if (size != 3) {
        MPI_Group all;
        MPI_Comm_group(comm, &all);
        MPI_Group_incl(all, 1, &other, &partner);
        measure("fence", fence, TARGET, LATE_US);
        measure("post-start-complete-wait", gats, TARGET, LATE_US);
        MPI_Group_free(&partner);
        MPI_Group_free(&all);
    } else {
        pin(rank == ORIGIN ? 0 : 1);
        measure("lock", lock, ORIGIN, HOLD_US);
    }
    MPI_Win_free(&win);
    return end();
}
