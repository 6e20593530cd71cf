// Where the kernel gives no more address space, making one more object is MPI_ERR_NO_MEM, and afterwards all works
// as before. The limit holds for the whole of the rank's address space.
//# ranks: 1
// A node of its own would have the memory of the network in its limit.
//# nodes: no
#include "check.h"
#include <sys/resource.h>
#include <unistd.h>
enum { MOST = 4000000, LONGEST = 1000, BLOCKS = 3000000 };

/* Leaves the rank so much more address space. */
static void leave(rlim_t bytes) {
    struct rlimit limit;
    long pages;
    CHECK_EQ(getrlimit(RLIMIT_AS, &limit), 0);
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    limit.rlim_cur = (rlim_t)(pages * sysconf(_SC_PAGESIZE)) + bytes;
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

static void leave_all(void) {
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_AS, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

static MPI_Datatype *types;
static MPI_Comm *comms;
static MPI_Info *infos;
static MPI_Group *groups;

static int make_type(int i) { return MPI_Type_contiguous(i + 2, MPI_INT, &types[i]); }
static int drop_type(int i) { return MPI_Type_free(&types[i]); }
static int make_comm(int i) { return MPI_Comm_dup(MPI_COMM_SELF, &comms[i]); }
static int drop_comm(int i) { return MPI_Comm_free(&comms[i]); }
static int drop_group(int i) { return MPI_Group_free(&groups[i]); }
static int drop_info(int i) { return MPI_Info_free(&infos[i]); }

static int make_info(int i) {
    char value[LONGEST];
    memset(value, 'x', LONGEST - 1);
    value[LONGEST - 1] = 0;
    int code = MPI_Info_create(&infos[i]);
    if (code) return code;
    code = MPI_Info_set(infos[i], "key", value);
    if (code) MPI_Info_free(&infos[i]);
    return code;
}

static int make_group(int i) {
    MPI_Group world;
    int zero = 0, code = MPI_Comm_group(MPI_COMM_WORLD, &world);
    if (code) return code;
    code = MPI_Group_incl(world, 1, &zero, &groups[i]);
    MPI_Group_free(&world);
    return code;
}

static char *bytes;
static MPI_Request *receives;

static int make_receive(int i) { return MPI_Irecv(&bytes[i], 1, MPI_CHAR, 0, 1, MPI_COMM_SELF, &receives[i]); }

static int drop_receive(int i) {
    int code = MPI_Cancel(&receives[i]);
    return code ? code : MPI_Wait(&receives[i], MPI_STATUS_IGNORE);
}

/* Makes objects until there is no memory, frees them, and makes one more. */
static void fill(const char *what, int make(int), int drop(int)) {
    int made = 0, code = MPI_SUCCESS;
    leave(16 << 20);
    while (made < MOST && (code = make(made)) == MPI_SUCCESS) made++;
    if (class_of(code) != MPI_ERR_NO_MEM) fprintf(stderr, "%s\n", what);
    CHECK_EQ(class_of(code), MPI_ERR_NO_MEM);
    CHECK(made > 100);
    CHECK_EQ(class_of(make(made)), MPI_ERR_NO_MEM);
    leave_all();
    CHECK_EQ(make(made), MPI_SUCCESS);
    for (int i = made; i >= 0; i--) CHECK_EQ(drop(i), MPI_SUCCESS);
}

/* Matched messages for whose receive there is no memory stay what they are, and come later. */
static void fill_matched(void) {
    enum { MESSAGES = 60000 };
    static char out[MESSAGES];
    MPI_Message *messages = calloc(MESSAGES, sizeof *messages);
    MPI_Request *sends = calloc(MESSAGES, sizeof *sends);
    int refused = 0;
    CHECK(messages && sends);
    for (int i = 0; i < MESSAGES; i++) {
        out[i] = (char)(i % 101);
        CHECK_EQ(MPI_Isend(&out[i], 1, MPI_CHAR, 0, 2, MPI_COMM_SELF, &sends[i]), MPI_SUCCESS);
        CHECK_EQ(MPI_Mprobe(0, 2, MPI_COMM_SELF, &messages[i], MPI_STATUS_IGNORE), MPI_SUCCESS);
    }
    for (int i = 0; i < MESSAGES;) {
        int code = MPI_SUCCESS;
        leave(256 << 10);
        while (i < MESSAGES) {
            code = MPI_Imrecv(&bytes[i], 1, MPI_CHAR, &messages[i], &receives[i]);
            if (code != MPI_SUCCESS) break;
            CHECK(messages[i++] == MPI_MESSAGE_NULL);
        }
        leave_all();
        if (code == MPI_SUCCESS) break;
        CHECK_EQ(class_of(code), MPI_ERR_NO_MEM);
        CHECK(messages[i] != MPI_MESSAGE_NULL);
        refused++;
        CHECK_EQ(MPI_Imrecv(&bytes[i], 1, MPI_CHAR, &messages[i], &receives[i]), MPI_SUCCESS);
        i++;
    }
    CHECK(refused > 0);
    CHECK_EQ(MPI_Waitall(MESSAGES, receives, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    CHECK_EQ(MPI_Waitall(MESSAGES, sends, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    for (int i = 0; i < MESSAGES; i++) CHECK_EQ(bytes[i], out[i]);
    free(messages);
    free(sends);
}

/* Receives that could not be made take no message, whatever of them there was no memory for: much is made, and each
 * time that the little memory which is left does not do there is more for one. */
static void fill_receives(void) {
    enum { RECEIVES = 100000 };
    int made = 0, refused = 0;
    while (made < RECEIVES) {
        int code = MPI_SUCCESS;
        leave(256 << 10);
        while (made < RECEIVES && (code = make_receive(made)) == MPI_SUCCESS) made++;
        leave_all();
        if (code == MPI_SUCCESS) break;
        CHECK_EQ(class_of(code), MPI_ERR_NO_MEM);
        refused++;
        CHECK_EQ(make_receive(made), MPI_SUCCESS);
        made++;
    }
    CHECK(refused > 0);
    for (int i = made - 1; i >= 0; i--) CHECK_EQ(drop_receive(i), MPI_SUCCESS);
    char in = 0, out = 7;
    MPI_Request request;
    CHECK_EQ(MPI_Isend(&out, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF, &request), MPI_SUCCESS);
    CHECK_EQ(MPI_Recv(&in, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK_EQ(in, out);
    CHECK_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
}

/* One object that is too long. */
static void too_long(void) {
    int *ones = malloc(BLOCKS * sizeof *ones), *places = malloc(BLOCKS * sizeof *places);
    for (int i = 0; i < BLOCKS; i++) ones[i] = 1, places[i] = i * 2;
    MPI_Datatype type;
    leave(16 << 20);
    CHECK_EQ(class_of(MPI_Type_indexed(BLOCKS, ones, places, MPI_INT, &type)), MPI_ERR_NO_MEM);
    leave_all();
    CHECK_EQ(MPI_Type_indexed(BLOCKS, ones, places, MPI_INT, &type), MPI_SUCCESS);
    MPI_Type_free(&type);
    free(ones);
    free(places);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    types = calloc(MOST, sizeof *types);
    comms = calloc(MOST, sizeof *comms);
    infos = calloc(MOST, sizeof *infos);
    groups = calloc(MOST, sizeof *groups);
    bytes = calloc(MOST, 1);
    receives = calloc(MOST, sizeof *receives);
    CHECK(types && comms && infos && groups && bytes && receives);
    // First: afterwards there is free memory of others.
    fill_matched();
    fill_receives();
    fill("datatypes", make_type, drop_type);
    fill("communicators", make_comm, drop_comm);
    fill("infos", make_info, drop_info);
    fill("groups", make_group, drop_group);
    too_long();
    return finish();
}
