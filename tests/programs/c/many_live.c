//# ranks: 1
// Making or freeing an object takes as many instructions when many others live as when few do. Counted one by one
// with the processor's trap flag, so that other load changes nothing.
#define _GNU_SOURCE
#include "check.h"
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>

enum { FEW = 30, MANY = 30000, REPEATS = 3 };

typedef union {
    MPI_Comm comm;
    MPI_Group group;
    MPI_Datatype type;
    MPI_Info info;
    MPI_Request request;
    MPI_Op op;
    MPI_Errhandler handler;
    MPI_Win win;
    int number;
} Object;

static MPI_Group world;
static int zero, next_tag;
static char byte;

static void add(void *in, void *out, int *length, MPI_Datatype *type) { (void)in, (void)out, (void)length, (void)type; }
static void handle(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code; }

static void make_comm(Object *it) { MPI_Comm_dup(MPI_COMM_SELF, &it->comm); }
static void free_comm(Object *it) { MPI_Comm_free(&it->comm); }
static void make_group(Object *it) { MPI_Group_incl(world, 1, &zero, &it->group); }
static void free_group(Object *it) { MPI_Group_free(&it->group); }
static void make_type(Object *it) { MPI_Type_contiguous(3, MPI_INT, &it->type); }
static void free_type(Object *it) { MPI_Type_free(&it->type); }
static void make_info(Object *it) { MPI_Info_create(&it->info); }
static void free_info(Object *it) { MPI_Info_free(&it->info); }
static void make_send(Object *it) { MPI_Send_init(&byte, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF, &it->request); }
static void free_send(Object *it) { MPI_Request_free(&it->request); }
static void make_receive(Object *it) {
    MPI_Irecv(&byte, 1, MPI_CHAR, 0, next_tag++ % MANY, MPI_COMM_SELF, &it->request);
}
static void free_receive(Object *it) { MPI_Cancel(&it->request), MPI_Wait(&it->request, MPI_STATUS_IGNORE); }
static void make_keyval(Object *it) {
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &it->number, NULL);
}
static void free_keyval(Object *it) { MPI_Comm_free_keyval(&it->number); }
static void make_op(Object *it) { MPI_Op_create(add, 1, &it->op); }
static void free_op(Object *it) { MPI_Op_free(&it->op); }
static void make_handler(Object *it) { MPI_Comm_create_errhandler(handle, &it->handler); }
static void free_handler(Object *it) { MPI_Errhandler_free(&it->handler); }
static void make_window(Object *it) { MPI_Win_create(&byte, 1, 1, MPI_INFO_NULL, MPI_COMM_SELF, &it->win); }
static void free_window(Object *it) { MPI_Win_free(&it->win); }
static void make_class(Object *it) { MPI_Add_error_class(&it->number); }
static void make_code(Object *it) { MPI_Add_error_code(MPI_ERR_OTHER, &it->number); }
static void make_string(Object *it) {
    make_code(it);
    MPI_Add_error_string(it->number, "text");
}
static void keep(Object *it) { (void)it; }

static volatile long count;

static void on_trap(int signal) {
    (void)signal;
    count++;
}

#define TRACE(how)                                                                                           \
    __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; " how " (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::: \
                         "memory", "cc")

static long instructions(void (*operation)(Object *), Object *it) {
    count = 0;
    TRACE("orq $0x100,");
    operation(it);
    TRACE("andq $~0x100,");
    return count;
}

// The least instructions to make one more, to free it, and to free the oldest, while `live` of them live.
static void measure(int live, void (*make)(Object *), void (*unmake)(Object *), long least[3]) {
    Object *made = calloc(live + REPEATS, sizeof *made), newest;
    least[0] = least[1] = least[2] = 1L << 60;
    for (int i = 0; i < live; i++)
        make(&made[i]);
    for (int i = 0; i < REPEATS; i++) {
        long counts[3];
        counts[0] = instructions(make, &newest);
        counts[1] = instructions(unmake, &newest);
        counts[2] = instructions(unmake, &made[i]);
        make(&made[live + i]);
        for (int j = 0; j < 3; j++)
            if (counts[j] < least[j])
                least[j] = counts[j];
    }
    for (int i = REPEATS; i < live + REPEATS; i++)
        unmake(&made[i]);
    free(made);
}

int main(void) {
    static const struct {
        const char *name;
        void (*make)(Object *), (*unmake)(Object *);
    } kinds[] = {
        {"communicators", make_comm, free_comm},
        {"groups", make_group, free_group},
        {"datatypes", make_type, free_type},
        {"infos", make_info, free_info},
        {"persistent requests", make_send, free_send},
        {"receives", make_receive, free_receive},
        {"keyvals", make_keyval, free_keyval},
        {"operations", make_op, free_op},
        {"error handlers", make_handler, free_handler},
        {"windows", make_window, free_window},
        {"error classes", make_class, keep},
        {"error codes", make_code, keep},
        {"error strings", make_string, keep},
    };
    static const char *steps[] = {"make", "free the newest", "free the oldest"};
    int failures = 0;
    MPI_Init(NULL, NULL);
    MPI_Comm_group(MPI_COMM_SELF, &world);
    signal(SIGTRAP, on_trap);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        long few[3], many[3];
        measure(FEW, kinds[i].make, kinds[i].unmake, few);
        measure(kinds[i].make == make_window ? MANY / 10 : MANY, kinds[i].make, kinds[i].unmake, many);
        for (int step = 0; step < 3; step++)
            // A search tree is some levels deeper.
            if (many[step] > 2 * few[step] + 300) {
                fprintf(stderr, "%s of %s: %ld instructions among few, %ld among many\n", steps[step], kinds[i].name,
                        few[step], many[step]);
                failures++;
            }
    }
    CHECK_EQ(failures, 0);
    MPI_Group_free(&world);
    MPI_Finalize();
    return 0;
}
