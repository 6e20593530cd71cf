/* The experiments of "Nonblocking Epochs in MPI One-Sided Communication", figures 2 to 12: puts of
 * 1 MB, partners that are late by DELAY microseconds. Every line of output is "series x y", y in
 * microseconds but for the rates.
 *   epochs blocking|nonblocking|reorder
 * Without Cohort's MPIX functions (-DNO_NONBLOCKING_EPOCHS) only the first one exists.
 */
#include "pair.h"

enum { DELAY = 1000, LEAD = 300, REPEATS = 30, TRANSACTIONS = 400 };
enum mode { BLOCKING, NONBLOCKING, REORDER };
static enum mode mode;
static int size;
static char *memory;
static MPI_Win win;
static MPI_Group one[8];

/* When an experiment began, for all ranks alike. */
static double begun;

static void sleep_until(double us) {
    struct timespec end = {.tv_sec = (time_t)(us / 1e6), .tv_nsec = (long)(us * 1e3) % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) != 0) continue;
}

/* Work outside of MPI is sleep, as there may be fewer CPUs than ranks. */
static void work_us(double length) {
    if (length > 0) sleep_until(now_us() + length);
}

#ifdef NO_NONBLOCKING_EPOCHS
#define MPIX_Win_icomplete(win, request) (*(request) = MPI_REQUEST_NULL, MPI_Win_complete(win))
#define MPIX_Win_iwait(win, request) (*(request) = MPI_REQUEST_NULL, MPI_Win_wait(win))
#define MPIX_Win_iunlock(to, win, request) (*(request) = MPI_REQUEST_NULL, MPI_Win_unlock(to, win))
#define MPIX_Win_ifence(assertion, win, request) (*(request) = MPI_REQUEST_NULL, MPI_Win_fence(assertion, win))
#define MPIX_Win_ilock(kind, to, assertion, win, request) \
    (*(request) = MPI_REQUEST_NULL, MPI_Win_lock(kind, to, assertion, win))
#endif

/* Ranks 0 and 2 put into different halves. */
static void put(int to) { MPI_Put(buffer, LONGEST, MPI_BYTE, to, rank == 2 ? LONGEST : 0, LONGEST, MPI_BYTE, win); }

/* Closes an epoch, and with blocking calls waits for its end. */
static MPI_Request complete(void) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (mode == BLOCKING) MPI_Win_complete(win);
    else MPIX_Win_icomplete(win, &request);
    return request;
}
static MPI_Request wait_exposed(void) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (mode == BLOCKING) MPI_Win_wait(win);
    else MPIX_Win_iwait(win, &request);
    return request;
}
static MPI_Request fence(int assertion) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (mode == BLOCKING) MPI_Win_fence(assertion, win);
    else MPIX_Win_ifence(assertion, win, &request);
    return request;
}
static MPI_Request lock_put_unlock(int to, double work) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (mode == BLOCKING) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
        put(to);
        work_us(work);
        MPI_Win_unlock(to, win);
    } else {
        MPIX_Win_ilock(MPI_LOCK_EXCLUSIVE, to, 0, win, &request);
        put(to);
        MPIX_Win_iunlock(to, win, &request);
        work_us(work);
    }
    return request;
}
static MPI_Request epoch_with(int partner, int exposes) {
    if (exposes) {
        MPI_Win_post(one[partner], 0, win);
        return wait_exposed();
    }
    MPI_Win_start(one[partner], 0, win);
    put(partner);
    return complete();
}
static void finish(MPI_Request *request) { MPI_Wait(request, MPI_STATUS_IGNORE); }

/* Each experiment runs on ranks 0 to 2 and returns what its figure shows at the rank that measures.
 * The first one: how long until a message that follows the epoch is sent. */
static double late_post(void) {
    if (rank == 0) {
        MPI_Win_start(one[1], 0, win);
        put(1);
        MPI_Request request = complete();
        MPI_Send(buffer, LONGEST, MPI_BYTE, 2, 0, MPI_COMM_WORLD);
        double sent = now_us();
        finish(&request);
        return sent - begun;
    } else if (rank == 1) {
        work_us(DELAY);
        MPI_Win_post(one[0], 0, win);
        MPI_Win_wait(win);
    } else if (rank == 2) {
        MPI_Recv(buffer, LONGEST, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return now_us() - begun;
}

static double late_complete(void) {
    if (rank == 1) {
        MPI_Win_start(one[0], 0, win);
        put(0);
        MPI_Request request = MPI_REQUEST_NULL;
        if (mode != BLOCKING) request = complete();
        work_us(DELAY);
        if (mode == BLOCKING) request = complete();
        finish(&request);
    } else if (rank == 0) {
        MPI_Win_post(one[1], 0, win);
        MPI_Win_wait(win);
    }
    return now_us() - begun;
}

/* Rank 0 is the target, and computes after the epoch. */
static double early_fence(void) {
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    if (rank == 1) put(0);
    MPI_Request request = fence(MPI_MODE_NOSUCCEED);
    if (rank == 0) work_us(DELAY);
    finish(&request);
    return now_us() - begun;
}

/* Rank 1, the origin, works between its put and its fence, or beside the fence. */
static double wait_at_fence(void) {
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    if (rank == 1) put(0);
    if (rank == 1 && mode == BLOCKING) work_us(DELAY);
    MPI_Request request = fence(MPI_MODE_NOSUCCEED);
    if (rank == 1 && mode != BLOCKING) work_us(DELAY);
    finish(&request);
    return now_us() - begun;
}

/* Rank 1 has the lock of rank 2 first and works; rank 0 wants it next. */
static double late_unlock(void) {
    if (rank == 0) MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (mode == BLOCKING) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
        else MPIX_Win_ilock(MPI_LOCK_EXCLUSIVE, 2, 0, win, &request);
        put(2);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        if (mode == BLOCKING) work_us(DELAY);
        if (mode == BLOCKING) MPI_Win_unlock(2, win);
        else MPIX_Win_iunlock(2, win, &request);
        if (mode != BLOCKING) work_us(DELAY);
        finish(&request);
    } else if (rank == 0) {
        MPI_Request request = lock_put_unlock(2, 0);
        finish(&request);
    }
    return now_us() - begun;
}

/* Rank 1 has an epoch with rank 0, which is late, and then one with rank 2, where it exposes its
 * memory or accesses theirs; what rank 2 sees. */
static double one_after_another(int first_exposes, int second_exposes) {
    int exposes[] = {first_exposes, second_exposes};
    if (rank == 1) {
        MPI_Request requests[2];
        for (int i = 0; i < 2; i++) requests[i] = epoch_with(2 * i, exposes[i]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else if (rank == 0 || rank == 2) {
        if (rank == 0) work_us(DELAY);
        MPI_Request request = epoch_with(1, !exposes[rank / 2]);
        finish(&request);
    }
    return now_us() - begun;
}
static double two_accesses(void) { return one_after_another(0, 0); }
static double access_after_exposure(void) { return one_after_another(1, 0); }
static double two_exposures(void) { return one_after_another(1, 1); }
static double exposure_after_access(void) { return one_after_another(0, 1); }

/* Rank 1 has the lock of rank 2 and works; rank 0 wants that lock, and then the one of rank 1: how
   long until it has used the second one. */
static double two_locks(void) {
    if (rank == 0) MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
        put(2);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        work_us(DELAY);
        MPI_Win_unlock(2, win);
    } else if (rank == 0) {
        MPI_Request first = lock_put_unlock(2, 0), second = lock_put_unlock(1, 0);
        finish(&second);
        double end = now_us();
        finish(&first);
        return end - begun;
    }
    return now_us() - begun;
}

/* Transactions on random targets, each an exclusive lock and a small update; per second, of all ranks together. */
static double transactions(void) {
    MPI_Request requests[TRANSACTIONS];
    unsigned seed = (unsigned)rank * 7919 + 1;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_us();
    for (int i = 0; i < TRANSACTIONS; i++) {
        seed = seed * 1103515245 + 12345;
        int to = (int)(seed >> 16) % size, offset = (int)(seed >> 8) % (LONGEST / 8);
        requests[i] = MPI_REQUEST_NULL;
        if (mode == BLOCKING) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
        else MPIX_Win_ilock(MPI_LOCK_EXCLUSIVE, to, 0, win, &requests[i]);
        MPI_Accumulate(buffer, 8, MPI_BYTE, to, offset * 8, 8, MPI_BYTE, MPI_BXOR, win);
        if (mode == BLOCKING) MPI_Win_unlock(to, win);
        else MPIX_Win_iunlock(to, win, &requests[i]);
    }
    MPI_Waitall(TRANSACTIONS, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    return TRANSACTIONS * size / (now_us() - start) * 1e6;
}

static void measure(const char *name, double (*experiment)(void), int observer) {
    double times[REPEATS], middle;
    for (int i = 0; i < REPEATS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        begun = now_us() + LEAD;
        MPI_Bcast(&begun, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        sleep_until(begun);
        times[i] = experiment();
    }
    middle = median(times, REPEATS);
    MPI_Bcast(&middle, 1, MPI_DOUBLE, observer, MPI_COMM_WORLD);
    static const char *const names[] = {"blocking", "nonblocking", "reorder"};
    if (rank == 0) printf("%s %s %.0f\n", names[mode], name, middle);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 2 || size < 3 || size > 8) {
        if (rank == 0) fprintf(stderr, "epochs needs 3 to 8 ranks and the name of a mode\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    mode = argv[1][0] == 'b' ? BLOCKING : argv[1][0] == 'n' ? NONBLOCKING : REORDER;
    MPI_Info info;
    MPI_Info_create(&info);
    static const char *const hints[] = {
        "MPI_WIN_ACCESS_AFTER_ACCESS_REORDER", "MPI_WIN_ACCESS_AFTER_EXPOSURE_REORDER",
        "MPI_WIN_EXPOSURE_AFTER_EXPOSURE_REORDER", "MPI_WIN_EXPOSURE_AFTER_ACCESS_REORDER",
    };
    for (int i = 0; mode == REORDER && i < 4; i++) MPI_Info_set(info, hints[i], "1");
    MPI_Win_allocate(2 * LONGEST, 1, info, MPI_COMM_WORLD, &memory, &win);
    MPI_Info_free(&info);
    MPI_Group all;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    for (int member = 0; member < size; member++) MPI_Group_incl(all, 1, &member, &one[member]);
    measure("2-late-post", late_post, 0);
    measure("3-late-complete", late_complete, 0);
    measure("4-early-fence", early_fence, 0);
    measure("5-wait-at-fence", wait_at_fence, 0);
    measure("6-late-unlock", late_unlock, 0);
    measure("7-two-accesses", two_accesses, 2);
    measure("8-two-locks", two_locks, 0);
    measure("9-access-after-exposure", access_after_exposure, 2);
    measure("10-two-exposures", two_exposures, 2);
    measure("11-exposure-after-access", exposure_after_access, 2);
    measure("12-transactions-per-second", transactions, 0);
    for (int member = 0; member < size; member++) MPI_Group_free(&one[member]);
    MPI_Group_free(&all);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
