// Nonblocking epochs (MPIX_Win_i*): nobody waits for a late partner before he asks for completion.
// The five patterns of waiting that blocking epochs force upon programs, and the hints that let
// epochs overtake each other. Who waits for whom is told by messages, not by clocks: the late
// partner goes on only after the others have shown that they did not wait for him.
//# ranks: 3
//# abi: mpi5
//# progress: all
#include "check.h"
enum { BYTES = 300 << 10 };
static MPI_Win win;
static char *memory, *data;

static void say(int to) { MPI_Send(NULL, 0, MPI_BYTE, to, 0, MPI_COMM_WORLD); }
static void hear(int from) { MPI_Recv(NULL, 0, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
static void wait_for(MPI_Request *request) { MPI_Wait(request, MPI_STATUS_IGNORE); }
static int is_over(MPI_Request *request) {
    int over;
    MPI_Test(request, &over, MPI_STATUS_IGNORE);
    return over;
}
static void put(int to) { MPI_Put(data, BYTES, MPI_BYTE, to, 0, BYTES, MPI_BYTE, win); }
static void arrived(int from) {
    for (int i = 0; i < BYTES; i++) CHECK_EQ(memory[i], from + 1);
}
static MPI_Group of(int member) {
    MPI_Group all, one;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &member, &one);
    MPI_Group_free(&all);
    return one;
}
static MPI_Request begin(int (*function)(MPI_Group, int, MPI_Win, MPI_Request *), int member) {
    MPI_Request request;
    MPI_Group group = of(member);
    function(group, 0, win, &request);
    MPI_Group_free(&group);
    CHECK(is_over(&request));
    return request;
}
static void next(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    memset(memory, 0, BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
}

// The target posts only after the origin has left its access epoch.
static void late_post(void) {
    MPI_Request request;
    if (rank == 0) {
        begin(MPIX_Win_istart, 1);
        put(1);
        MPIX_Win_icomplete(win, &request);
        CHECK(!is_over(&request));
        say(1);
        wait_for(&request);
    } else if (rank == 1) {
        hear(0);
        begin(MPIX_Win_ipost, 0);
        MPI_Win_wait(win);
        arrived(0);
    }
    next();
}

// The target's epoch ends while the origin still works, before it asks for completion.
static void late_complete(void) {
    MPI_Request request;
    if (rank == 0) {
        begin(MPIX_Win_istart, 1);
        put(1);
        MPIX_Win_icomplete(win, &request);
        hear(1);
        wait_for(&request);
    } else if (rank == 1) {
        begin(MPIX_Win_ipost, 0);
        MPIX_Win_iwait(win, &request);
        wait_for(&request);
        arrived(0);
        say(0);
    }
    next();
}

// Early fence and wait at fence: rank 2 fences last, after the others have gone on.
static void fences(void) {
    MPI_Request requests[2];
    MPIX_Win_ifence(MPI_MODE_NOPRECEDE, win, &requests[0]);
    CHECK(is_over(&requests[0]));
    if (rank == 2) {
        hear(0);
        hear(1);
    }
    put((rank + 1) % size);
    MPIX_Win_ifence(MPI_MODE_NOSUCCEED, win, &requests[1]);
    if (rank != 2) {
        CHECK(!is_over(&requests[1]));
        say(2);
    }
    wait_for(&requests[1]);
    arrived((rank + size - 1) % size);
    next();
}

// The second holder of a lock is done before the first one asks whether its own epoch is. MPI orders no requests for
// a lock of different ranks: that rank 0 is first, rank 1 hears only when an operation under the lock is complete.
static void late_unlock(void) {
    MPI_Request request;
    if (rank == 0) {
        MPIX_Win_ilock(MPI_LOCK_EXCLUSIVE, 2, 0, win, &request);
        CHECK(is_over(&request));
        put(2);
        MPI_Win_flush(2, win);
        MPIX_Win_iunlock(2, win, &request);
        say(1);
        hear(1);
        wait_for(&request);
    } else if (rank == 1) {
        hear(0);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
        put(2);
        MPI_Win_unlock(2, win);
        say(0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 2) arrived(1);
    next();
}

// Flushes wait for what was asked for before them only, and epochs of any kind follow each other without waiting.
static void flushes(void) {
    MPI_Request requests[4];
    if (rank == 0) {
        // MPI_Win_lock may return before the lock is held; a flushed operation cannot.
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
        put(2);
        MPI_Win_flush(2, win);
        say(1);
        hear(1);
        MPI_Win_unlock(2, win);
    } else if (rank == 1) {
        hear(0);
        MPIX_Win_ilock(MPI_LOCK_SHARED, 2, 0, win, &requests[0]);
        MPIX_Win_iflush(2, win, &requests[1]);
        CHECK(is_over(&requests[1]));
        put(2);
        MPIX_Win_iflush_local_all(win, &requests[1]);
        MPIX_Win_iunlock(2, win, &requests[2]);
        MPIX_Win_ilock(MPI_LOCK_SHARED, 0, 0, win, &requests[0]);
        put(0);
        MPIX_Win_iunlock(0, win, &requests[3]);
        CHECK(!is_over(&requests[1]) && !is_over(&requests[2]) && !is_over(&requests[3]));
        say(0);
        MPI_Waitall(3, requests + 1, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 1) arrived(1);
    next();
}

static void hint(const char *key, const char *value) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    MPI_Win_set_info(win, info);
    MPI_Info_free(&info);
}

// Rank 2's first epoch has to do with rank 0, which is late; the second one, with rank 1, is done before all the same.
static void overtaking(const char *key, int first_exposes, int second_exposes) {
    MPI_Request requests[2];
    hint(key, "1");
    if (rank == 2) {
        for (int i = 0; i < 2; i++) {
            int exposes = i == 0 ? first_exposes : second_exposes;
            begin(exposes ? MPIX_Win_ipost : MPIX_Win_istart, i);
            if (!exposes) put(i);
            exposes ? MPIX_Win_iwait(win, &requests[i]) : MPIX_Win_icomplete(win, &requests[i]);
        }
        wait_for(&requests[1]);
        CHECK(!is_over(&requests[0]));
        say(0);
        wait_for(&requests[0]);
    } else {
        if (rank == 0) hear(2);
        int exposes = !(rank == 0 ? first_exposes : second_exposes);
        begin(exposes ? MPIX_Win_ipost : MPIX_Win_istart, 2);
        if (!exposes) put(2);
        exposes ? MPI_Win_wait(win) : MPI_Win_complete(win);
        if (exposes) arrived(2);
    }
    hint(key, "false");
    next();
}

// Without the hint the second epoch waits for the first.
static void in_order(void) {
    MPI_Request requests[2];
    if (rank == 2) {
        for (int i = 0; i < 2; i++) {
            begin(MPIX_Win_istart, i);
            put(i);
            MPIX_Win_icomplete(win, &requests[i]);
        }
        hear(1);
        CHECK(!is_over(&requests[0]) && !is_over(&requests[1]));
        say(0);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
        if (rank == 0) hear(2);
        begin(MPIX_Win_ipost, 2);
        if (rank == 1) {
            int over;
            for (int i = 0; i < 1000; i++) {
                MPI_Win_test(win, &over);
                CHECK(!over);
            }
            say(2);
        }
        MPI_Win_wait(win);
        arrived(2);
    }
    next();
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    data = malloc(BYTES);
    memset(data, rank + 1, BYTES);
    MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    late_post();
    late_complete();
    fences();
    late_unlock();
    flushes();
    in_order();
    overtaking("MPI_WIN_ACCESS_AFTER_ACCESS_REORDER", 0, 0);
    overtaking("MPI_WIN_ACCESS_AFTER_EXPOSURE_REORDER", 1, 0);
    overtaking("MPI_WIN_EXPOSURE_AFTER_EXPOSURE_REORDER", 1, 1);
    overtaking("MPI_WIN_EXPOSURE_AFTER_ACCESS_REORDER", 0, 1);
    MPI_Win_free(&win);
    free(data);
    return finish();
}
