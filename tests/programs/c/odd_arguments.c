// Arguments and results at the edge of what MPI allows: sizes that no int holds, arguments that are ignored, strides
// beyond all numbers, blanks and bytes that are no text, types that are not committed, what is no memory of MPI's, and
// whose error handler hears of a matched receive.
//# ranks: 1
//# abi: mpich, mpi5, openmpi
//# nodes: no
#include "check.h"
#include <limits.h>

static void packed_sizes(void) {
    MPI_Datatype large;
    int bytes = 7;
    MPI_Type_contiguous(1 << 30, MPI_CHAR, &large);
    MPI_Type_commit(&large);
    CHECK_EQ(MPI_Pack_size(1, large, MPI_COMM_WORLD, &bytes), MPI_SUCCESS);
    CHECK(bytes >= 1 << 30);
    CHECK_EQ(MPI_Pack_size(4, large, MPI_COMM_WORLD, &bytes), MPI_SUCCESS);
    CHECK_EQ(bytes, MPI_UNDEFINED);
    MPI_Type_free(&large);
}

// Only communication wants a type committed: others ask how large it is, or how much of it has come.
static void not_committed(void) {
    MPI_Datatype pair;
    MPI_Status status;
    MPI_Aint there = -1;
    int count = -1;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    CHECK_EQ(MPI_Status_set_elements(&status, pair, 6), MPI_SUCCESS);
    CHECK_EQ(MPI_Get_count(&status, pair, &count), MPI_SUCCESS);
    CHECK_EQ(count, 3);
    CHECK_EQ(MPI_Get_elements(&status, pair, &count), MPI_SUCCESS);
    CHECK_EQ(count, 6);
    CHECK_EQ(MPI_Pack_size(1, pair, MPI_COMM_WORLD, &count), MPI_SUCCESS);
    CHECK(count >= 2 * (int)sizeof(int));
    CHECK_EQ(MPI_Pack_external_size("external32", 1, pair, &there), MPI_SUCCESS);
    CHECK_EQ(there, 8);
    CHECK_EQ(class_of(MPI_Send(&count, 0, pair, MPI_PROC_NULL, 0, MPI_COMM_WORLD)), MPI_ERR_TYPE);
    CHECK_EQ(class_of(MPI_Get_count(&status, MPI_DATATYPE_NULL, &count)), MPI_ERR_TYPE);
    MPI_Type_free(&pair);
}

// What a constant stands for cannot be changed.
static void environment(void) {
    MPI_Info own;
    int before, after, found, room = 0;
    MPI_Info_get_nkeys(MPI_INFO_ENV, &before);
    CHECK_EQ(class_of(MPI_Info_set(MPI_INFO_ENV, "odd", "1")), MPI_ERR_INFO);
    CHECK_EQ(class_of(MPI_Info_delete(MPI_INFO_ENV, "maxprocs")), MPI_ERR_INFO);
    MPI_Info_get_nkeys(MPI_INFO_ENV, &after);
    CHECK_EQ(after, before);
    CHECK_EQ(MPI_Info_dup(MPI_INFO_ENV, &own), MPI_SUCCESS);
    CHECK_EQ(MPI_Info_set(own, "odd", "1"), MPI_SUCCESS);
    MPI_Info_get_string(MPI_INFO_ENV, "odd", &room, NULL, &found);
    CHECK(!found);
    MPI_Info_free(&own);
}

// The argument of a dimension that is not distributed is ignored, and told as it was given.
static void distributed(int ignored, int block) {
    int sizes[2] = {4, 30}, how[2] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK}, arguments[2] = {ignored, block};
    int grid[2] = {1, 1}, integers[12], counts[4], bytes;
    MPI_Aint addresses[1];
    MPI_Datatype array, member;
    CHECK_EQ(MPI_Type_create_darray(1, 0, 2, sizes, how, arguments, grid, MPI_ORDER_C, MPI_INT, &array), MPI_SUCCESS);
    MPI_Type_get_envelope(array, &counts[0], &counts[1], &counts[2], &counts[3]);
    CHECK_EQ(counts[0], 12);
    CHECK_EQ(counts[3], MPI_COMBINER_DARRAY);
    CHECK_EQ(MPI_Type_get_contents(array, 12, 0, 1, integers, addresses, &member), MPI_SUCCESS);
    CHECK_EQ(integers[5], MPI_DISTRIBUTE_NONE);
    CHECK_EQ(integers[6], MPI_DISTRIBUTE_BLOCK);
    CHECK_EQ(integers[7], ignored);
    CHECK_EQ(integers[8], block);
    CHECK_EQ(integers[11], MPI_ORDER_C);
    MPI_Type_size(array, &bytes);
    CHECK_EQ(bytes, 4 * 30 * (int)sizeof(int));
    MPI_Type_free(&array);
}

static void ranges(void) {
    MPI_Group world, group;
    int members, range[1][3] = {{0, 0, INT_MAX}}, twice[2][3] = {{0, 0, INT_MAX}, {0, 0, INT_MIN}};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    CHECK_EQ(MPI_Group_range_incl(world, 1, range, &group), MPI_SUCCESS);
    MPI_Group_size(group, &members);
    CHECK_EQ(members, 1);
    MPI_Group_free(&group);
    CHECK_EQ(class_of(MPI_Group_range_incl(world, 2, twice, &group)), MPI_ERR_RANK);
    range[0][2] = INT_MIN;
    CHECK_EQ(MPI_Group_range_excl(world, 1, range, &group), MPI_SUCCESS);
    MPI_Group_size(group, &members);
    CHECK_EQ(members, 0);
    if (group != MPI_GROUP_EMPTY) MPI_Group_free(&group);
    MPI_Group_free(&world);
}

// Keys and values are as the program gives them, blanks and all bytes but NUL.
static void pairs(void) {
    static const char *keys[] = {"key", " key", "key ", "\xff\xfe", "caf\xe9"};
    static const char *values[] = {" a ", "  ", "", "\x80 latin\xe9 ", "\xc3\xa9"};
    MPI_Info info;
    int count, found, length;
    char text[MPI_MAX_INFO_KEY + 64];
    MPI_Info_create(&info);
    for (int i = 0; i < 5; i++) CHECK_EQ(MPI_Info_set(info, keys[i], values[i]), MPI_SUCCESS);
    MPI_Info_get_nkeys(info, &count);
    CHECK_EQ(count, 5);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(MPI_Info_get_nthkey(info, i, text), MPI_SUCCESS);
        CHECK(strcmp(text, keys[i]) == 0);
        CHECK_EQ(MPI_Info_get_valuelen(info, keys[i], &length, &found), MPI_SUCCESS);
        CHECK(found && length == (int)strlen(values[i]));
        length = sizeof text;
        CHECK_EQ(MPI_Info_get_string(info, keys[i], &length, text, &found), MPI_SUCCESS);
        CHECK(found && length == (int)strlen(values[i]) + 1);
        CHECK(strcmp(text, values[i]) == 0);
    }
    // A part of one that is no text is cut anywhere.
    length = 3;
    MPI_Info_get_string(info, keys[3], &length, text, &found);
    CHECK(strcmp(text, "\x80 ") == 0);
    MPI_Info_delete(info, "key ");
    MPI_Info_get_nkeys(info, &count);
    CHECK_EQ(count, 4);
    CHECK_EQ(class_of(MPI_Info_delete(info, "key ")), MPI_ERR_INFO_NOKEY);
    CHECK_EQ(class_of(MPI_Info_set(info, "", "x")), MPI_ERR_INFO_KEY);
    MPI_Info_free(&info);
}

// Names are bytes, too.
static void names(void) {
    static const char *given[] = {"caf\xe9", "\xff", "caf\xc3\xa9", " ", ""};
    char text[MPI_MAX_OBJECT_NAME], expected[MPI_MAX_OBJECT_NAME], longer[3 * MPI_MAX_OBJECT_NAME + 2];
    int length;
    MPI_Comm comm;
    MPI_Win win;
    MPI_Datatype type;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, comm, &win);
    MPI_Type_contiguous(2, MPI_INT, &type);
#define NAMED(kind, object, name)                                            \
    do {                                                                     \
        CHECK_EQ(MPI_##kind##_set_name(object, name), MPI_SUCCESS);          \
        CHECK_EQ(MPI_##kind##_get_name(object, text, &length), MPI_SUCCESS); \
        CHECK_EQ(length, strlen(expected));                                  \
        CHECK(strcmp(text, expected) == 0);                                  \
    } while (0)
    for (int i = 0; i < 5; i++) {
        strcpy(expected, given[i]);
        NAMED(Comm, comm, given[i]);
        NAMED(Win, win, given[i]);
        NAMED(Type, type, given[i]);
    }
    // What is too long is cut, text between two characters.
    for (int text_too = 0; text_too < 2; text_too++) {
        int most = MPI_MAX_OBJECT_NAME - 1;
        for (int i = 0; i < MPI_MAX_OBJECT_NAME; i++) memcpy(longer + 2 * i, text_too ? "\xc3\xa9" : "\xe9\xe9", 3);
        memcpy(expected, longer, sizeof expected);
        expected[text_too ? most / 2 * 2 : most] = 0;
        NAMED(Comm, comm, longer);
        NAMED(Win, win, longer);
        NAMED(Type, type, longer);
    }
    MPI_Type_free(&type);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

static int heard, heard_by_others;

static void hear(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    heard = class_of(*code);
}

static void hear_others(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    heard_by_others++;
}

#define HEARD(class, call)           \
    do {                             \
        heard = -1;                  \
        CHECK_EQ(class_of(call), class); \
        CHECK_EQ(heard, class);      \
        CHECK_EQ(heard_by_others, 0); \
    } while (0)

static MPI_Message found(MPI_Comm comm) {
    static int data[4];
    MPI_Request request;
    MPI_Message message;
    MPI_Isend(data, 4, MPI_INT, 0, 5, comm, &request);
    MPI_Request_free(&request);
    CHECK_EQ(MPI_Mprobe(0, 5, comm, &message, MPI_STATUS_IGNORE), MPI_SUCCESS);
    return message;
}

static void matched_receives(void) {
    MPI_Comm own;
    MPI_Errhandler here, others;
    MPI_Request request;
    int data[4];
    MPI_Comm_dup(MPI_COMM_SELF, &own);
    MPI_Comm_create_errhandler(hear, &here);
    MPI_Comm_create_errhandler(hear_others, &others);
    MPI_Comm_set_errhandler(own, here);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, others);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, others);
    MPI_Message message = found(own);
    HEARD(MPI_ERR_TRUNCATE, MPI_Mrecv(data, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
    message = found(own);
    CHECK_EQ(MPI_Imrecv(data, 1, MPI_INT, &message, &request), MPI_SUCCESS);
    HEARD(MPI_ERR_TRUNCATE, MPI_Wait(&request, MPI_STATUS_IGNORE));
    // A receive that is refused leaves the message where it is.
    message = found(own);
    HEARD(MPI_ERR_COUNT, MPI_Mrecv(data, -1, MPI_INT, &message, MPI_STATUS_IGNORE));
    HEARD(MPI_ERR_BUFFER, MPI_Imrecv(NULL, 4, MPI_INT, &message, &request));
    CHECK(message != MPI_MESSAGE_NULL);
    CHECK_EQ(MPI_Mrecv(data, 4, MPI_INT, &message, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK(message == MPI_MESSAGE_NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&here);
    MPI_Errhandler_free(&others);
    MPI_Comm_free(&own);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    packed_sizes();
    not_committed();
    environment();
    CHECK_EQ(MPI_Free_mem(NULL), MPI_SUCCESS);
    distributed(MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG);
    distributed(3, 30);
    distributed(-2, 31);
    ranges();
    pairs();
    names();
    matched_receives();
    return finish();
}
