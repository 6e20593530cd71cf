// The k-th call of the system by which a rank gets memory fails, for every k: starved PLACE WHO [FIRST LAST [ERROR]]
//
// PLACE is a kind of calls of MPI, see `places`. WHO is the rank whose calls fail, or -1 for all ranks. Each round lets
// one more call succeed before one fails; the rounds end with that in which none fails any more. Then the same with all
// calls from the k-th on. An operation may do what it shall, or return MPI_ERR_NO_MEM, and what it gives is right.
// After each round all works as before. FIRST and LAST bound k.
#include "failing.h"
#include "../c/check.h"

enum { MOST = 64, LONG = 3 << 20, KEPT = 1 << 16, TRIES = 60 };

static MPI_Comm control;
static int refused, done;
static int *out, *in;

/* Whether an operation has done it; if not, there was no memory. */
static int ok(int code, const char *what) {
    if (code == MPI_SUCCESS) return done++, 1;
    int class = class_of(code);
    if (class != MPI_ERR_NO_MEM) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        failing_stop();
        MPI_Error_string(code, text, &length);
        fprintf(stderr, "rank %d: %s: class %d: %s\n", rank, what, class, text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return refused++, 0;
}
#define OK(call) ok(call, #call)

/* Objects that a round has made: they are freed when nothing fails any more. */
static MPI_Datatype types[KEPT];
static MPI_Comm comms[KEPT];
static MPI_Info infos[KEPT];
static int type_count, comm_count, info_count;

static void keep_type(MPI_Datatype type) { types[type_count++] = type; }
static void keep_comm(MPI_Comm comm) {
    if (comm != MPI_COMM_NULL) comms[comm_count++] = comm;
}

static void types_made(int round) {
    int count = 20000 + round * 100, *ones = malloc(count * sizeof *ones), *at = malloc(count * sizeof *at);
    if (!ones || !at) return free(ones), free(at);
    for (int i = 0; i < count; i++) ones[i] = 1 + i % 2, at[i] = 3 * i;
    MPI_Datatype type, outer, resized;
    if (OK(MPI_Type_indexed(count, ones, at, MPI_INT, &type))) {
        keep_type(type);
        int sizes[] = {4, 5}, parts[] = {2, 3}, from[] = {1, 1}, packed;
        if (OK(MPI_Type_commit(&type)) && OK(MPI_Pack_size(1, type, MPI_COMM_WORLD, &packed))) {
            CHECK_EQ(packed, 4 * (count + count / 2));
        }
        if (OK(MPI_Type_create_subarray(2, sizes, parts, from, MPI_ORDER_C, type, &outer))) keep_type(outer);
        if (OK(MPI_Type_create_resized(type, 0, 1 << 20, &resized))) keep_type(resized);
        if (OK(MPI_Type_dup(type, &outer))) keep_type(outer);
        OK(MPI_Type_set_name(type, "indexed"));
    }
    free(ones), free(at);
}

static void comms_made(int round) {
    MPI_Comm comm, cart;
    int dims[] = {size}, periods[] = {1};
    (void)round;
    for (int i = 0; i < 4; i++) {
        if (OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm))) keep_comm(comm);
        if (OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm))) keep_comm(comm);
        if (OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &cart))) keep_comm(cart);
        if (OK(MPI_Comm_dup(MPI_COMM_SELF, &comm))) keep_comm(comm);
    }
}

static void windows(int round) {
    MPI_Win win;
    int *base = NULL, next = (rank + 1) % size, count = 1000 + round;
    if (OK(MPI_Win_allocate((MPI_Aint)LONG, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win))) {
        memset(base, 0, LONG);
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        FAILING_SPARE(MPI_Barrier(control));
        for (int i = 0; i < count; i++) out[i] = rank * count + i;
        MPI_Datatype every;
        MPI_Type_vector(count, 1, 2, MPI_INT, &every), MPI_Type_commit(&every);
        if (OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win))) {
            int put = OK(MPI_Put(out, count, MPI_INT, next, 0, 1, every, win));
            memset(in, -1, 4 * count);
            int fetched = OK(MPI_Get(in, count, MPI_INT, next, 100000, count, MPI_INT, win));
            int added = OK(MPI_Accumulate(out, count, MPI_INT, next, 200000, count, MPI_INT, MPI_SUM, win));
            MPI_Win_unlock(next, win);
            for (int i = 0; i < count && fetched; i++) CHECK_EQ(in[i], 0);
            MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win);
            if (added) {
                MPI_Get(in, count, MPI_INT, next, 200000, count, MPI_INT, win);
                MPI_Win_flush(next, win);
                for (int i = 0; i < count; i++) CHECK_EQ(in[i], out[i]);
            }
            if (put && OK(MPI_Get(in, count, MPI_INT, next, 0, 1, every, win))) {
                MPI_Win_flush(next, win);
                for (int i = 0; i < count; i++) CHECK_EQ(in[i], out[i]);
            }
            MPI_Win_unlock(next, win);
        }
        MPI_Type_free(&every);
        OK(MPI_Win_free(&win));
    }
    if (OK(MPI_Win_create(out, LONG, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win))) OK(MPI_Win_free(&win));
    if (OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win))) {
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        if (OK(MPI_Win_attach(win, out, LONG))) MPI_Win_detach(win, out);
        OK(MPI_Win_free(&win));
    }
    if (OK(MPI_Win_allocate_shared(100000, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win))) OK(MPI_Win_free(&win));
}

/* Sends that come before their receives, of many lengths; those that cannot be made tell their receivers. */
static void early(int round) {
    MPI_Request requests[MOST];
    int sent[MOST], expected[MOST], next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (int i = 0; i < LONG / 4; i++) out[i] = rank + i;
    for (int i = 0; i < MOST; i++) {
        int count = 500 + round + i * 97;
        sent[i] = OK(MPI_Isend(out + i, count, MPI_INT, next, i, MPI_COMM_WORLD, &requests[i]));
        if (!sent[i]) requests[i] = MPI_REQUEST_NULL;
    }
    FAILING_SPARE(MPI_Sendrecv(sent, MOST, MPI_INT, next, 1, expected, MOST, MPI_INT, before, 1, control,
                               MPI_STATUS_IGNORE));
    for (int i = MOST - 1; i >= 0; i--) {
        int count = 500 + round + i * 97;
        if (!expected[i]) continue;
        memset(in, -1, 4 * count);
        while (!OK(MPI_Recv(in, count, MPI_INT, before, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE))) failing_stop();
        for (int j = 0; j < count; j++) CHECK_EQ(in[j], before + i + j);
    }
    MPI_Waitall(MOST, requests, MPI_STATUSES_IGNORE);
}

/* Long messages whose layouts differ, packed and unpacked. */
static void layouts(int round) {
    int count = 50000 + 1000 * round, next = (rank + 1) % size, before = (rank + size - 1) % size, position = 0;
    MPI_Datatype every;
    MPI_Request request;
    if (!OK(MPI_Type_vector(count, 1, 2, MPI_INT, &every))) return;
    if (!OK(MPI_Type_commit(&every))) { MPI_Type_free(&every); return; }
    for (int i = 0; i < LONG / 4; i++) out[i] = rank + i, in[i] = -1;
    if (OK(MPI_Pack(out, 1, every, in, LONG, &position, MPI_COMM_WORLD))) CHECK_EQ(in[1], rank + 2);
    int ready = OK(MPI_Irecv(in, count, MPI_INT, before, 7, MPI_COMM_WORLD, &request)), will;
    FAILING_SPARE(MPI_Sendrecv(&ready, 1, MPI_INT, before, 2, &will, 1, MPI_INT, next, 2, control, MPI_STATUS_IGNORE));
    int sent = will && OK(MPI_Ssend(out, 1, every, next, 7, MPI_COMM_WORLD)), comes;
    FAILING_SPARE(MPI_Sendrecv(&sent, 1, MPI_INT, next, 3, &comes, 1, MPI_INT, before, 3, control, MPI_STATUS_IGNORE));
    if (ready && !comes) MPI_Cancel(&request);
    if (ready && OK(MPI_Wait(&request, MPI_STATUS_IGNORE)) && comes)
        for (int i = 0; i < count; i++) CHECK_EQ(in[i], before + 2 * i);
    MPI_Type_free(&every);
}

/* Collectives, with what they give where they say that they did. */
static void collectives(int round) {
    int count = 20000 + round, sum = size * (size - 1) / 2;
    for (int i = 0; i < count * size; i++) out[i] = rank;
    if (OK(MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD))) CHECK_EQ(in[count - 1], sum);
    if (OK(MPI_Reduce(out, in, count, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD)) && rank == 0) CHECK_EQ(in[9], sum);
    if (OK(MPI_Scan(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD))) CHECK_EQ(in[9], rank * (rank + 1) / 2);
    if (OK(MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD)))
        for (int i = 0; i < size; i++) CHECK_EQ(in[i * count], i);
    if (OK(MPI_Allgather(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD)))
        for (int i = 0; i < size; i++) CHECK_EQ(in[i * count + count - 1], i);
    if (OK(MPI_Reduce_scatter_block(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD))) CHECK_EQ(in[count - 1], sum);
    in[0] = in[count - 1] = rank + 1;
    if (OK(MPI_Bcast(in, count, MPI_INT, 1, MPI_COMM_WORLD))) CHECK_EQ(in[count - 1], 2);
    if (OK(MPI_Gather(out, count, MPI_INT, in, count, MPI_INT, 1, MPI_COMM_WORLD)) && rank == 1)
        for (int i = 0; i < size; i++) CHECK_EQ(in[i * count], i);
}

/* The same without waiting, and persistent ones; whether all have begun is told among the members. */
static void nonblocking(int round) {
    int count = 30000 + round, sum = size * (size - 1) / 2;
    MPI_Request request;
    for (int i = 0; i < count * size; i++) out[i] = rank;
    for (int kind = 0; kind < 4; kind++) {
        int code = kind == 0   ? MPI_Iallreduce(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request)
                   : kind == 1 ? MPI_Ialltoall(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD, &request)
                   : kind == 2 ? MPI_Ibarrier(MPI_COMM_WORLD, &request)
                               : MPI_Allreduce_init(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                                                    &request);
        if (!ok(code, "a nonblocking collective")) continue;
        if (kind == 3 && !OK(MPI_Start(&request))) { MPI_Request_free(&request); continue; }
        int was = OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        if (was && (kind == 0 || kind == 3)) CHECK_EQ(in[count - 1], sum);
        if (was && kind == 1) CHECK_EQ(in[count], 1);
        if (kind == 3) MPI_Request_free(&request);
    }
}

static int copies(MPI_Comm comm, int key, void *extra, void *in_, void *out_, int *flag) {
    (void)comm, (void)key, (void)extra;
    *(void **)out_ = in_, *flag = 1;
    return MPI_SUCCESS;
}

static void multiply(void *a, void *b, int *count, MPI_Datatype *type) { (void)a, (void)b, (void)count, (void)type; }
static void handle(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code; }

/* Small objects, many of each: who keeps them decides which of them meets the end. */
static void objects(int round) {
    char value[900];
    memset(value, 'x', sizeof value - 1), value[sizeof value - 1] = 0;
    MPI_Group world, part;
    int ends[] = {0, size - 1}, key;
    if (!OK(MPI_Comm_group(MPI_COMM_WORLD, &world))) return;
    for (int i = 0; i < 100 + round; i++) {
        MPI_Info info;
        MPI_Op op;
        MPI_Errhandler handler;
        MPI_Request request;
        if (OK(MPI_Info_create(&info))) {
            for (int j = 0; j < 4; j++) {
                char name[20];
                snprintf(name, sizeof name, "key%d", j);
                OK(MPI_Info_set(info, name, value));
            }
            infos[info_count++] = info;
        }
        if (OK(MPI_Group_incl(world, 2, ends, &part))) MPI_Group_free(&part);
        if (OK(MPI_Op_create(multiply, 1, &op))) MPI_Op_free(&op);
        if (OK(MPI_Comm_create_errhandler(handle, &handler))) MPI_Errhandler_free(&handler);
        if (OK(MPI_Comm_create_keyval(copies, MPI_COMM_NULL_DELETE_FN, &key, NULL))) {
            OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, value));
            MPI_Comm_delete_attr(MPI_COMM_SELF, key), MPI_Comm_free_keyval(&key);
        }
        if (OK(MPI_Send_init(out, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request))) MPI_Request_free(&request);
    }
    MPI_Group_free(&world);
}

/* Buffered sends, matched probes and partitions. */
static void others(int round) {
    int next = (rank + 1) % size, before = (rank + size - 1) % size, count = 1000 + round;
    int bytes = 40 * 1000 + MPI_BSEND_OVERHEAD, is_there, comes;
    void *buffer = malloc(bytes), *back;
    MPI_Request send, receive;
    MPI_Message message;
    for (int i = 0; i < LONG / 4; i++) out[i] = rank + i, in[i] = -1;
    if (buffer && OK(MPI_Buffer_attach(buffer, bytes))) {
        int sent = OK(MPI_Bsend(out, count, MPI_INT, next, 5, MPI_COMM_WORLD));
        FAILING_SPARE(MPI_Sendrecv(&sent, 1, MPI_INT, next, 4, &comes, 1, MPI_INT, before, 4, control,
                                   MPI_STATUS_IGNORE));
        if (comes) {
            while (!OK(MPI_Mprobe(before, 5, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE))) failing_stop();
            while (!OK(MPI_Mrecv(in, count, MPI_INT, &message, MPI_STATUS_IGNORE))) failing_stop();
            CHECK_EQ(in[count - 1], before + count - 1);
        }
        MPI_Buffer_detach(&back, &is_there);
    }
    free(buffer);
    int first = OK(MPI_Psend_init(out, 8, 10000, MPI_INT, next, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    int second = OK(MPI_Precv_init(in, 8, 10000, MPI_INT, before, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &receive)), all;
    int both = first && second;
    FAILING_SPARE(MPI_Allreduce(&both, &all, 1, MPI_INT, MPI_MIN, control));
    for (int i = 0; i < 2 && all; i++) {
        MPI_Start(&send), MPI_Start(&receive);
        for (int j = 0; j < 8; j++) MPI_Pready(j, send);
        MPI_Wait(&send, MPI_STATUS_IGNORE), MPI_Wait(&receive, MPI_STATUS_IGNORE);
        CHECK_EQ(in[79999], before + 79999);
    }
    if (first) MPI_Request_free(&send);
    if (second) MPI_Request_free(&receive);
}

static const struct {
    const char *name;
    void (*run)(int round);
    /* Objects are kept, so that many rounds come to the end of memory. */
    int tries;
} places[] = {{"types", types_made, TRIES}, {"comms", comms_made, 4 * TRIES}, {"objects", objects, TRIES},
              {"windows", windows, 2},      {"early", early, 2},              {"layouts", layouts, 2},
              {"others", others, 2},        {"collectives", collectives, 2},  {"nonblocking", nonblocking, 2}};

static void drop_all(void) {
    for (int i = 0; i < type_count; i++) MPI_Type_free(&types[i]);
    for (int i = 0; i < comm_count; i++) MPI_Comm_free(&comms[i]);
    for (int i = 0; i < info_count; i++) MPI_Info_free(&infos[i]);
    type_count = comm_count = info_count = 0;
}

int main(int argc, char **argv) {
    static const int calls[] = {SYS_mmap, SYS_mremap, SYS_brk};
    if (argc < 3) return 2;
    long first = argc > 4 ? atol(argv[3]) : 1, last = argc > 4 ? atol(argv[4]) : 1000000, rounds = 0;
    start(&argc, &argv);
    void (*run)(int) = NULL;
    int tries = 1;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (strcmp(places[i].name, argv[1]) == 0) run = places[i].run, tries = places[i].tries;
    int who = atoi(argv[2]), is_struck = who == rank || who < 0;
    out = malloc(LONG), in = malloc(LONG);
    CHECK(run && out && in);
    MPI_Comm_dup(MPI_COMM_WORLD, &control);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (!failing_start(calls, 3)) { if (rank == 0) puts("cannot let calls fail; passed"); return MPI_Finalize(); }
    for (int ever = 0; ever < 2; ever++) {
        for (long k = first; k <= (ever && last > 4 ? 4 : last); k++) {
            int hit = 0, any;
            if (is_struck) failing_begin_with(ENOMEM, k, ever ? 1L << 60 : k);
            int before = refused, is_over = 0;
            for (int again = 0; again < (ever ? tries : 1) && !is_over; again++) {
                run((int)rounds++ % 64);
                int mine = refused > before;
                FAILING_SPARE(MPI_Allreduce(&mine, &is_over, 1, MPI_INT, MPI_MAX, control));
            }
            if (is_struck) hit = failing_stop() >= k;
            MPI_Barrier(control);
            drop_all();
            MPI_Allreduce(&hit, &any, 1, MPI_INT, MPI_MAX, control);
            if (getenv("VERBOSE") && is_struck) fprintf(stderr, "rank %d: %s %ld, %d refused, %d done\n", rank,
                                                        argv[1], k, refused, done);
            if (!any) break;
        }
    }
    CHECK(done > 0);
    int before = refused;
    run(0);
    drop_all();
    CHECK_EQ(refused, before);
    MPI_Comm_free(&control);
    free(out), free(in);
    if (rank == who || (who < 0 && rank == 0)) printf("%s: %ld rounds, %d refused\n", argv[1], rounds, refused);
    return finish();
}
