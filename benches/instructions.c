/* Instructions of rank 0's own thread from a call of MPI to its return, counted one by one: the processor's trap flag
 * is set, and each instruction ends in a handler of SIGTRAP. Prints a line "name count" for each call, the least of
 * REPEATS calls. Rank 1 has always done its part before: what is counted is the path that waits for nobody.
 * With OWN=1 in the environment those of the C library are left out: which of its copies of memcpy runs, the processor
 * decides.
 *   instructions          all calls
 *   instructions NAME     where the instructions of one call are: "address count" lines, and the maps of the process
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { REPEATS = 15, MOST = 1 << 16, PARTS = 4, LONG = 8192, WINDOW = 16, PAUSE_US = 300 };

static int rank;
static const char *wanted;
static uintptr_t places[MOST], best_places[MOST];
static volatile unsigned count;
static unsigned best, empty;
static long out[PARTS], in[PARTS], blocks[2], result;
static long long_out[LONG], long_in[LONG];
static MPI_Win win;
static MPI_Comm ring;
static MPI_Request request, repeated_barrier, repeated_allreduce, repeated_bcast;

/* Code that is not counted: of the C libraries of this address space. */
static struct { uintptr_t start, end; } left_out[64];
static unsigned parts_left_out;

static void leave_out_libraries(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    if (!maps) exit(1);
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        char rights[8];
        if (!strstr(line, "/libc.so.6") || sscanf(line, "%lx-%lx %7s", &start, &end, rights) != 3 || rights[2] != 'x')
            continue;
        if (parts_left_out == sizeof left_out / sizeof *left_out) exit(1);
        left_out[parts_left_out].start = start;
        left_out[parts_left_out++].end = end;
    }
    fclose(maps);
}

static void on_trap(int signal, siginfo_t *information, void *context) {
    (void)signal, (void)information;
    uintptr_t place = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    for (unsigned part = 0; part < parts_left_out; part++)
        if (place >= left_out[part].start && place < left_out[part].end) return;
    if (count < MOST) places[count] = place;
    count++;
}

/* Changes the trap flag. The stack below is not ours to write to: a function's red zone. */
#define TRACE(how)                                                                                       \
    __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; " how " (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::: \
                         "memory", "cc")
#define TRACE_ON() TRACE("orq $0x100,")
#define TRACE_OFF() TRACE("andq $~0x100,")

static void keep(void) {
    if (count >= best) return;
    best = count;
    memcpy(best_places, places, (count < MOST ? count : MOST) * sizeof *places);
}

#define COUNTED(call)    \
    do {                 \
        usleep(PAUSE_US); \
        count = 0;       \
        TRACE_ON();      \
        call;            \
        TRACE_OFF();     \
        keep();          \
    } while (0)

static void to_peer(void) { MPI_Send(NULL, 0, MPI_BYTE, 1 - rank, 9, MPI_COMM_WORLD); }
static void from_peer(void) { MPI_Recv(NULL, 0, MPI_BYTE, 1 - rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
static void message_from_1(void) {
    if (rank == 1) MPI_Send(out, 1, MPI_LONG, 0, 1, MPI_COMM_WORLD), to_peer();
    else from_peer();
}
static void message_to_1(void) {
    if (rank == 1) MPI_Recv(in, 1, MPI_LONG, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void post(void) { MPI_Irecv(in, 1, MPI_LONG, 1, 1, MPI_COMM_WORLD, &request); }

static void nothing(void) {
    if (rank == 0) COUNTED((void)0);
}
static void send_8(void) {
    if (rank == 0) COUNTED(MPI_Send(out, 1, MPI_LONG, 1, 1, MPI_COMM_WORLD));
    message_to_1();
}
static void isend_8(void) {
    if (rank == 0) {
        COUNTED(MPI_Isend(out, 1, MPI_LONG, 1, 1, MPI_COMM_WORLD, &request));
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    message_to_1();
}
/* What a cell of the ring does not hold, and what goes in a block. */
static void isend_bytes(int bytes) {
    if (rank == 0) {
        COUNTED(MPI_Isend(long_out, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &request));
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else MPI_Recv(long_in, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void isend_100(void) { isend_bytes(100); }
static void isend_500(void) { isend_bytes(500); }
static void wait_sent(void) {
    if (rank == 0) {
        MPI_Isend(out, 1, MPI_LONG, 1, 1, MPI_COMM_WORLD, &request);
        COUNTED(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    message_to_1();
}
static void recv_8(void) {
    message_from_1();
    if (rank == 0) COUNTED(MPI_Recv(in, 1, MPI_LONG, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}
static void recv_any(void) {
    message_from_1();
    if (rank == 0) COUNTED(MPI_Recv(in, 1, MPI_LONG, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}
/* Rank 1 does not sleep meanwhile: a receive from a rank that sleeps looks into its ring. */
static void irecv_8(void) {
    if (rank == 0) COUNTED(post());
    if (rank == 0) to_peer();
    for (int flag = rank == 0; !flag;) MPI_Iprobe(0, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    if (rank == 1) from_peer();
    message_from_1();
    if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void irecv_there(void) {
    message_from_1();
    if (rank == 0) COUNTED(post());
    if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void wait_received(void) {
    if (rank == 0) post();
    if (rank == 0) to_peer();
    else from_peer();
    message_from_1();
    if (rank == 0) COUNTED(MPI_Wait(&request, MPI_STATUS_IGNORE));
}
static void test_received(void) {
    int flag = 0;
    if (rank == 0) post();
    message_from_1();
    if (rank == 0) COUNTED(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void test_pending(void) {
    int flag = 0;
    if (rank == 0) {
        post();
        COUNTED(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
        to_peer();
    } else from_peer();
    message_from_1();
    if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
}
/* Windows: what a Waitall of so many costs. */
static void wait_window(int messages, int sends) {
    MPI_Request window[WINDOW];
    for (int at = 0; at < messages; at++) {
        if (rank == 0 && sends) MPI_Isend(out, 1, MPI_LONG, 1, 1, MPI_COMM_WORLD, &window[at]);
        if (rank == 0 && !sends) MPI_Irecv(in, 1, MPI_LONG, 1, 1, MPI_COMM_WORLD, &window[at]);
    }
    if (rank == 0 && !sends) to_peer();
    if (rank == 1 && !sends) from_peer();
    for (int at = 0; at < messages && rank == 1; at++) {
        if (sends) MPI_Recv(in, 1, MPI_LONG, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else MPI_Send(out, 1, MPI_LONG, 0, 1, MPI_COMM_WORLD);
    }
    if (rank == 1 && !sends) to_peer();
    if (rank == 0 && !sends) from_peer();
    if (rank == 0) COUNTED(MPI_Waitall(messages, window, MPI_STATUSES_IGNORE));
}
static void waitall_sent(void) { wait_window(WINDOW, 1); }
static void waitall_received(void) { wait_window(WINDOW, 0); }
static void iprobe_nothing(void) {
    int flag = 0;
    if (rank == 0) COUNTED(MPI_Iprobe(1, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
}
static void start_8(void) {
    if (rank == 0) {
        MPI_Send_init(out, 1, MPI_LONG, 1, 1, MPI_COMM_WORLD, &request);
        COUNTED(MPI_Start(&request));
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    }
    message_to_1();
}
/* The last partition, or the wait behind it: in which of both the message leaves is the MPI's choice. */
static void partitioned(int counts_wait) {
    if (rank == 0) MPI_Psend_init(out, PARTS, 1, MPI_LONG, 1, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    else MPI_Precv_init(in, PARTS, 1, MPI_LONG, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    if (rank == 1) to_peer();
    else {
        from_peer();
        for (int part = 0; part < PARTS - 1; part++) MPI_Pready(part, request);
        if (counts_wait) MPI_Pready(PARTS - 1, request);
        else COUNTED(MPI_Pready(PARTS - 1, request));
    }
    if (rank == 0 && counts_wait) COUNTED(MPI_Wait(&request, MPI_STATUS_IGNORE));
    else MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}
static void pready(void) { partitioned(0); }
static void wait_psend(void) { partitioned(1); }
static void put_8(void) {
    if (rank == 0) COUNTED(MPI_Put(out, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win));
    if (rank == 0) MPI_Win_flush(1, win);
}
static void get_8(void) {
    if (rank == 0) COUNTED(MPI_Get(in, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win));
    if (rank == 0) MPI_Win_flush(1, win);
}
static void accumulate_8(void) {
    if (rank == 0) COUNTED(MPI_Accumulate(out, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_SUM, win));
    if (rank == 0) MPI_Win_flush(1, win);
}
static void fetch_and_op_8(void) {
    if (rank == 0) COUNTED(MPI_Fetch_and_op(out, &result, MPI_LONG, 1, 0, MPI_SUM, win));
    if (rank == 0) MPI_Win_flush(1, win);
}
static void flush(void) {
    if (rank == 0) {
        MPI_Put(out, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win);
        COUNTED(MPI_Win_flush(1, win));
    }
}
static void barrier(void) {
    if (rank == 0) COUNTED(MPI_Barrier(MPI_COMM_WORLD));
    else MPI_Barrier(MPI_COMM_WORLD);
}
static void allreduce_8(void) {
    if (rank == 0) COUNTED(MPI_Allreduce(out, in, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    else MPI_Allreduce(out, in, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
}
static void bcast_8(void) {
    if (rank == 0) COUNTED(MPI_Bcast(out, 1, MPI_LONG, 0, MPI_COMM_WORLD));
    else MPI_Bcast(out, 1, MPI_LONG, 0, MPI_COMM_WORLD);
}
static void scatter_8(void) {
    if (rank == 0) COUNTED(MPI_Scatter(blocks, 1, MPI_LONG, in, 1, MPI_LONG, 0, MPI_COMM_WORLD));
    else MPI_Scatter(NULL, 0, MPI_LONG, in, 1, MPI_LONG, 0, MPI_COMM_WORLD);
}
static void scattered_8(void) {
    if (rank == 0) COUNTED(MPI_Scatter(NULL, 0, MPI_LONG, in, 1, MPI_LONG, 1, MPI_COMM_WORLD));
    else MPI_Scatter(blocks, 1, MPI_LONG, in, 1, MPI_LONG, 1, MPI_COMM_WORLD);
}
static void gather_8(void) {
    if (rank == 0) COUNTED(MPI_Gather(out, 1, MPI_LONG, blocks, 1, MPI_LONG, 0, MPI_COMM_WORLD));
    else MPI_Gather(out, 1, MPI_LONG, NULL, 0, MPI_LONG, 0, MPI_COMM_WORLD);
}
static void reduce_8(void) {
    if (rank == 0) COUNTED(MPI_Reduce(out, in, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD));
    else MPI_Reduce(out, NULL, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
}
/* Of those with a block of any length for each member, both get and give one of 8 bytes. */
static const int ones[] = {1, 1}, places_of_2[] = {0, 1};
static void allgatherv_8(void) {
    if (rank == 0) COUNTED(MPI_Allgatherv(out, 1, MPI_LONG, blocks, ones, places_of_2, MPI_LONG, MPI_COMM_WORLD));
    else MPI_Allgatherv(out, 1, MPI_LONG, blocks, ones, places_of_2, MPI_LONG, MPI_COMM_WORLD);
}
static void all_to_all(void) {
    MPI_Alltoallv(out, ones, places_of_2, MPI_LONG, blocks, ones, places_of_2, MPI_LONG, MPI_COMM_WORLD);
}
static void alltoallv_8(void) {
    if (rank == 0) COUNTED(all_to_all());
    else all_to_all();
}
static void alltoallw_8(void) {
    static const MPI_Datatype types[] = {MPI_LONG, MPI_LONG};
    static const int places[] = {0, sizeof(long)};
    if (rank == 0) COUNTED(MPI_Alltoallw(out, ones, places, types, blocks, ones, places, types, MPI_COMM_WORLD));
    else MPI_Alltoallw(out, ones, places, types, blocks, ones, places, types, MPI_COMM_WORLD);
}
/* Of a ring of two, who have two edges each way. */
static void neighbor_alltoall_8(void) {
    if (rank == 0) COUNTED(MPI_Neighbor_alltoall(out, 1, MPI_LONG, blocks, 1, MPI_LONG, ring));
    else MPI_Neighbor_alltoall(out, 1, MPI_LONG, blocks, 1, MPI_LONG, ring);
}
/* Of more than what a post holds itself. */
static void scan_512(void) {
    if (rank == 0) COUNTED(MPI_Scan(long_out, long_in, 64, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    else MPI_Scan(long_out, long_in, 64, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
}
static void scatter_reduced(void) {
    static const int halves[] = {32, 32};
    MPI_Reduce_scatter(long_out, long_in, halves, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
}
static void reduce_scatter_512(void) {
    if (rank == 0) COUNTED(scatter_reduced());
    else scatter_reduced();
}
static void end_both(void) { MPI_Wait(&request, MPI_STATUS_IGNORE); }
static void ibarrier(void) {
    if (rank == 0) COUNTED(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    else MPI_Ibarrier(MPI_COMM_WORLD, &request);
    end_both();
}
static void begin_allreduce(void) {
    MPI_Iallreduce(out, in, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
}
static void iallreduce_8(void) {
    if (rank == 0) COUNTED(begin_allreduce());
    else begin_allreduce();
    end_both();
}
static void begin_reduce(int root) {
    MPI_Ireduce(out, in, 1, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD, &request);
}
static void ireduce_8(void) {
    if (rank == 0) COUNTED(begin_reduce(0));
    else begin_reduce(0);
    end_both();
}
static void ireduced_8(void) {
    if (rank == 0) COUNTED(begin_reduce(1));
    else begin_reduce(1);
    end_both();
}
static void ibcast_8(void) {
    if (rank == 0) COUNTED(MPI_Ibcast(out, 1, MPI_LONG, 0, MPI_COMM_WORLD, &request));
    else MPI_Ibcast(out, 1, MPI_LONG, 0, MPI_COMM_WORLD, &request);
    end_both();
}
static void wait_iallreduce(void) {
    begin_allreduce();
    if (rank == 0) from_peer();
    else to_peer();
    if (rank == 0) COUNTED(end_both());
    else end_both();
}
/* Of 64 KB: by rank 0 as the last member, whose partner moves the data then. */
static void begin_allreduce_64k(void) {
    MPI_Iallreduce(long_out, long_in, LONG, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
}
static void begin_bcast_64k(void) { MPI_Ibcast(long_out, LONG, MPI_LONG, 0, MPI_COMM_WORLD, &request); }
static void start_64k(void (*begin)(void)) {
    if (rank == 0) COUNTED(begin());
    else begin();
    end_both();
}
static void wait_64k(void (*begin)(void)) {
    begin();
    if (rank == 0) COUNTED(end_both());
    else end_both();
}
static void iallreduce_64k(void) { start_64k(begin_allreduce_64k); }
static void ibcast_64k(void) { start_64k(begin_bcast_64k); }
static void wait_iallreduce_64k(void) { wait_64k(begin_allreduce_64k); }
static void wait_ibcast_64k(void) { wait_64k(begin_bcast_64k); }
static void start_of(MPI_Request *repeated) {
    if (rank == 0) COUNTED(MPI_Start(repeated));
    else MPI_Start(repeated);
    MPI_Wait(repeated, MPI_STATUS_IGNORE);
}
static void wait_of(MPI_Request *repeated) {
    MPI_Start(repeated);
    if (rank == 0) from_peer();
    else to_peer();
    if (rank == 0) COUNTED(MPI_Wait(repeated, MPI_STATUS_IGNORE));
    else MPI_Wait(repeated, MPI_STATUS_IGNORE);
}
static void start_barrier(void) { start_of(&repeated_barrier); }
static void start_allreduce(void) { start_of(&repeated_allreduce); }
static void start_bcast(void) { start_of(&repeated_bcast); }
static void wait_barrier(void) { wait_of(&repeated_barrier); }
static void wait_allreduce(void) { wait_of(&repeated_allreduce); }
/* Outside of the epoch of the operations above. */
static void lock(void) {
    if (rank == 0) {
        COUNTED(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
        MPI_Win_unlock(1, win);
    }
}
static void unlock(void) {
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        MPI_Put(out, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win);
        COUNTED(MPI_Win_unlock(1, win));
    }
}
static void lock_all(void) {
    if (rank == 0) {
        COUNTED(MPI_Win_lock_all(0, win));
        MPI_Win_unlock_all(win);
    }
}
static void unlock_all(void) {
    if (rank == 0) {
        MPI_Win_lock_all(0, win);
        COUNTED(MPI_Win_unlock_all(win));
    }
}

typedef struct {
    const char *name;
    void (*call)(void);
} Call;

static const Call apart[] = {
    {"Send", send_8},
    {"Recv, there", recv_8},
    {"Recv, any source", recv_any},
    {"Isend", isend_8},
    {"Isend, 100 B", isend_100},
    {"Isend, 500 B", isend_500},
    {"Irecv, not there", irecv_8},
    {"Irecv, there", irecv_there},
    {"Wait, sent", wait_sent},
    {"Wait, received", wait_received},
    {"Waitall, 16 sent", waitall_sent},
    {"Waitall, 16 received", waitall_received},
    {"Test, received", test_received},
    {"Test, pending", test_pending},
    {"Iprobe, nothing", iprobe_nothing},
    {"Start", start_8},
    {"Pready, last", pready},
    {"Wait, Psend", wait_psend},
    {"Barrier", barrier},
    {"Bcast", bcast_8},
    {"Allreduce", allreduce_8},
    {"Scatter, root", scatter_8},
    {"Scatter, other", scattered_8},
    {"Gather, root", gather_8},
    {"Reduce, root", reduce_8},
    {"Allgatherv", allgatherv_8},
    {"Alltoallv", alltoallv_8},
    {"Alltoallw", alltoallw_8},
    {"Neighbor_alltoall", neighbor_alltoall_8},
    {"Scan, 512 B", scan_512},
    {"Reduce_scatter, 512 B", reduce_scatter_512},
    {"Ibarrier", ibarrier},
    {"Ibcast", ibcast_8},
    {"Ireduce, root", ireduce_8},
    {"Ireduce, other", ireduced_8},
    {"Iallreduce", iallreduce_8},
    {"Wait, Iallreduce", wait_iallreduce},
    {"Ibcast, 64 KB", ibcast_64k},
    {"Iallreduce, 64 KB", iallreduce_64k},
    {"Wait, Ibcast, 64 KB", wait_ibcast_64k},
    {"Wait, Iallreduce, 64 KB", wait_iallreduce_64k},
    {"Start, Barrier_init", start_barrier},
    {"Start, Bcast_init", start_bcast},
    {"Start, Allreduce_init", start_allreduce},
    {"Wait, Barrier_init", wait_barrier},
    {"Wait, Allreduce_init", wait_allreduce},
    {"Win_lock", lock},
    {"Win_unlock", unlock},
    {"Win_lock_all", lock_all},
    {"Win_unlock_all", unlock_all},
};
static const Call in_epoch[] = {
    {"Put", put_8},
    {"Get", get_8},
    {"Accumulate", accumulate_8},
    {"Fetch_and_op", fetch_and_op_8},
    {"Win_flush", flush},
};

static void show_places(void) {
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "r-xp")) printf("map %s", line);
    if (maps) fclose(maps);
    for (unsigned at = 0; at < best && at < MOST; at++) printf("at %lx\n", (unsigned long)best_places[at]);
}

static void measure(const Call *call) {
    if (wanted && strcmp(wanted, call->name) != 0) return;
    best = UINT32_MAX;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        MPI_Barrier(MPI_COMM_WORLD);
        call->call();
    }
    if (rank != 0) return;
    printf("%s %u\n", call->name, best - empty);
    if (wanted) show_places();
}

int main(int argc, char **argv) {
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_RESTART};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (getenv("OWN")) leave_out_libraries();
    sigaction(SIGTRAP, &action, NULL);
    best = UINT32_MAX;
    for (int repeat = 0; repeat < REPEATS; repeat++) nothing();
    empty = best;
    wanted = argc > 1 ? argv[1] : NULL;
    long *memory;
    MPI_Cart_create(MPI_COMM_WORLD, 1, (const int[]){2}, (const int[]){1}, 0, &ring);
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &repeated_barrier);
    MPI_Bcast_init(out, 1, MPI_LONG, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &repeated_bcast);
    MPI_Allreduce_init(out, in, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &repeated_allreduce);
    MPI_Win_allocate(sizeof out, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    for (size_t at = 0; at < sizeof apart / sizeof *apart; at++) measure(&apart[at]);
    MPI_Win_lock_all(0, win);
    for (size_t at = 0; at < sizeof in_epoch / sizeof *in_epoch; at++) measure(&in_epoch[at]);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Comm_free(&ring);
    MPI_Request_free(&repeated_barrier);
    MPI_Request_free(&repeated_bcast);
    MPI_Request_free(&repeated_allreduce);
    MPI_Finalize();
    return 0;
}
