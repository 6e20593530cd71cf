/* The experiments of "Nonblocking Epochs in MPI One-Sided Communication", figures 2 to 12: puts of 1 MB, partners that are late by
 * DELAY microseconds. Every line of output is "series x y", y in microseconds but for the rates.
 *   epochs blocking|nonblocking|reorder
 * Without Cohort's MPIX functions (-DNO_NONBLOCKING_EPOCHS) only the first one exists.
 */
#include "pair.h"

enum { DELAY = 1000, REPEATS = 30, TRANSACTIONS = 400 };
enum mode { BLOCKING, NONBLOCKING, REORDER };
static enum mode mode;
static int size;
static char *memory;
static MPI_Win win;
static MPI_Group one[8];

#ifdef NO_NONBLOCKING_EPOCHS
#define MPIX_Win_icomplete(win, request) (*(request) = MPI_REQUEST_NULL, MPI_Win_complete(win))
#define MPIX_Win_iwait(win, request) (*(request) = MPI_REQUEST_NULL, MPI_Win_wait(win))
#define MPIX_Win_iunlock(to, win, request) (*(request) = MPI_REQUEST_NULL, MPI_Win_unlock(to, win))
#define MPIX_Win_ifence(assertion, win, request) (*(request) = MPI_REQUEST_NULL, MPI_Win_fence(assertion, win))
#define MPIX_Win_ilock(kind, to, assertion, win, request) \
    (*(request) = MPI_REQUEST_NULL, MPI_Win_lock(kind, to, assertion, win))
#endif

static void put(int to) { MPI_Put(buffer, LONGEST, MPI_BYTE, to, 0, LONGEST, MPI_BYTE, win); }

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
        compute_us(work);
        MPI_Win_unlock(to, win);
    } else {
        MPIX_Win_ilock(MPI_LOCK_EXCLUSIVE, to, 0, win, &request);
        put(to);
        MPIX_Win_iunlock(to, win, &request);
        compute_us(work);
    }
    return request;
}
static void finish(MPI_Request *request) { MPI_Wait(request, MPI_STATUS_IGNORE); }

/* Each experiment runs on ranks 0 to 2 and returns what its figure shows at the rank that measures. */
static double late_post(void) {
    double start = now_us();
    if (rank == 0) {
        MPI_Win_start(one[1], 0, win);
        put(1);
        MPI_Request request = complete();
        MPI_Send(buffer, LONGEST, MPI_BYTE, 2, 0, MPI_COMM_WORLD);
        finish(&request);
    } else if (rank == 1) {
        compute_us(DELAY);
        MPI_Win_post(one[0], 0, win);
        MPI_Win_wait(win);
    } else if (rank == 2) {
        MPI_Recv(buffer, LONGEST, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return now_us() - start;
}

static double late_complete(void) {
    double start = now_us();
    if (rank == 1) {
        MPI_Win_start(one[0], 0, win);
        put(0);
        MPI_Request request = MPI_REQUEST_NULL;
        if (mode != BLOCKING) request = complete();
        compute_us(DELAY);
        if (mode == BLOCKING) request = complete();
        finish(&request);
    } else if (rank == 0) {
        MPI_Win_post(one[1], 0, win);
        MPI_Win_wait(win);
    }
    return now_us() - start;
}

/* Rank 0 is the target, and computes after the epoch. */
static double early_fence(void) {
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    double start = now_us();
    if (rank == 1) put(0);
    MPI_Request request = fence(MPI_MODE_NOSUCCEED);
    if (rank == 0) compute_us(DELAY);
    finish(&request);
    return now_us() - start;
}

/* Rank 1, the origin, works between its put and its fence, or beside the fence. */
static double wait_at_fence(void) {
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    double start = now_us();
    if (rank == 1) put(0);
    if (rank == 1 && mode == BLOCKING) compute_us(DELAY);
    MPI_Request request = fence(MPI_MODE_NOSUCCEED);
    if (rank == 1 && mode != BLOCKING) compute_us(DELAY);
    finish(&request);
    return now_us() - start;
}

/* Rank 1 has the lock of rank 2 first and works; rank 0 wants it next. */
static double late_unlock(void) {
    if (rank == 0) MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double start = now_us();
    if (rank == 1) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (mode == BLOCKING) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
        else MPIX_Win_ilock(MPI_LOCK_EXCLUSIVE, 2, 0, win, &request);
        put(2);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        if (mode == BLOCKING) compute_us(DELAY);
        if (mode == BLOCKING) MPI_Win_unlock(2, win);
        else MPIX_Win_iunlock(2, win, &request);
        if (mode != BLOCKING) compute_us(DELAY);
        finish(&request);
    } else if (rank == 0) {
        MPI_Request request = lock_put_unlock(2, 0);
        finish(&request);
    }
    return now_us() - start;
}

/* Rank 0's first target is late, its second one is not (access after access); what rank 2 sees. */
static double two_targets(void) {
    double start = now_us();
    if (rank == 0) {
        MPI_Request requests[2];
        for (int to = 1; to <= 2; to++) {
            MPI_Win_start(one[to], 0, win);
            put(to);
            requests[to - 1] = complete();
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else if (rank <= 2) {
        if (rank == 1) compute_us(DELAY);
        MPI_Win_post(one[0], 0, win);
        MPI_Request request = wait_exposed();
        finish(&request);
    }
    return now_us() - start;
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
    if (mode == REORDER) MPI_Info_set(info, "MPI_WIN_ACCESS_AFTER_ACCESS_REORDER", "1");
    MPI_Win_allocate(LONGEST, 1, info, MPI_COMM_WORLD, &memory, &win);
    MPI_Info_free(&info);
    MPI_Group all;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    for (int member = 0; member < size; member++) MPI_Group_incl(all, 1, &member, &one[member]);
    measure("2-late-post", late_post, 0);
    measure("3-late-complete", late_complete, 0);
    measure("4-early-fence", early_fence, 0);
    measure("5-wait-at-fence", wait_at_fence, 0);
    measure("6-late-unlock", late_unlock, 0);
    measure("7-two-targets", two_targets, 2);
    measure("12-transactions-per-second", transactions, 0);
    for (int member = 0; member < size; member++) MPI_Group_free(&one[member]);
    MPI_Group_free(&all);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
