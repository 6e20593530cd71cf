// What MPI leaves open or forbids, and programs rely on all the same, since other MPIs have it so.
//# ranks: 2
#include "check.h"
static int calls;
static MPI_Comm told;

static void note(MPI_Comm *comm, int *code, ...) {
    (void)code;
    told = *comm;
    calls++;
}

// Errors that belong to no object are MPI_COMM_WORLD's affair until the program has set a handler for MPI_COMM_SELF.
static void errors_without_object(void) {
    MPI_Errhandler handler;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK_EQ(class_of(MPI_Type_contiguous(-1, MPI_INT, &type)), MPI_ERR_COUNT);
    CHECK_EQ(class_of(MPI_Comm_free(&(MPI_Comm){MPI_COMM_NULL})), MPI_ERR_COMM);
    CHECK_EQ(class_of(MPI_Request_free(&request)), MPI_ERR_REQUEST);
    MPI_Comm_create_errhandler(note, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Type_contiguous(-1, MPI_INT, &type);
    CHECK(calls == 1 && told == MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_EQ(class_of(MPI_Type_contiguous(-1, MPI_INT, &type)), MPI_ERR_COUNT);
    CHECK_EQ(calls, 1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
}

// Nothing of no type.
static void no_type(void) {
    MPI_Request request;
    MPI_Status status;
    int other = 1 - rank, value = 3;
    CHECK_EQ(MPI_Sendrecv(NULL, 0, MPI_DATATYPE_NULL, other, 1, NULL, 0, MPI_DATATYPE_NULL, other, 1, MPI_COMM_WORLD,
                          &status), MPI_SUCCESS);
    CHECK_EQ(MPI_Irecv(NULL, 0, MPI_DATATYPE_NULL, other, 2, MPI_COMM_WORLD, &request), MPI_SUCCESS);
    CHECK_EQ(MPI_Send(NULL, 0, MPI_DATATYPE_NULL, other, 2, MPI_COMM_WORLD), MPI_SUCCESS);
    CHECK_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
    CHECK_EQ(MPI_Bcast(NULL, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_Send(&value, 1, MPI_DATATYPE_NULL, other, 2, MPI_COMM_WORLD)), MPI_ERR_TYPE);
}

// The same for one of several parts, and for all of them.
static void no_type_of_parts(void) {
    enum { NEIGHBOURS = 2 };
    int none[NEIGHBOURS] = {0, 0}, others[NEIGHBOURS] = {0}, starts[NEIGHBOURS] = {0}, out = 10 + rank, in = -1;
    MPI_Aint places[NEIGHBOURS] = {0};
    MPI_Datatype types[NEIGHBOURS], nothing[NEIGHBOURS] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
    MPI_Request request;
    MPI_Comm world = MPI_COMM_WORLD, ring;
    for (int member = 0; member < size; member++) {
        others[member] = member != rank;
        types[member] = member == rank ? MPI_DATATYPE_NULL : MPI_INT;
    }
#define RECEIVED(call)                                                     \
    do {                                                                   \
        CHECK_EQ(call, MPI_SUCCESS);                                       \
        CHECK_EQ(in, 11 - rank);                                           \
        in = -1;                                                           \
    } while (0)
    RECEIVED(MPI_Alltoallw(&out, others, starts, types, &in, others, starts, types, world));
    CHECK_EQ(MPI_Ialltoallw(&out, others, starts, types, &in, others, starts, types, world, &request), MPI_SUCCESS);
    RECEIVED(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(MPI_Alltoallw_init(&out, others, starts, types, &in, others, starts, types, world, MPI_INFO_NULL,
                                &request), MPI_SUCCESS);
    MPI_Start(&request);
    RECEIVED(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Request_free(&request);
    CHECK_EQ(class_of(MPI_Alltoallw(&out, others, starts, nothing, &in, others, starts, types, world)), MPI_ERR_TYPE);

    MPI_Cart_create(world, 1, &size, &(int){0}, 0, &ring);
    MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
    int sides[NEIGHBOURS] = {rank == 1, rank == 0};
    for (int side = 0; side < NEIGHBOURS; side++) types[side] = sides[side] ? MPI_INT : MPI_DATATYPE_NULL;
    RECEIVED(MPI_Neighbor_alltoallw(&out, sides, places, types, &in, sides, places, types, ring));
    MPI_Comm_free(&ring);

    MPI_Datatype no = MPI_DATATYPE_NULL;
    CHECK_EQ(MPI_Gatherv(NULL, 0, no, NULL, none, starts, no, 0, world), MPI_SUCCESS);
    CHECK_EQ(MPI_Scatterv(NULL, none, starts, no, NULL, 0, no, 0, world), MPI_SUCCESS);
    CHECK_EQ(MPI_Allgatherv(NULL, 0, no, NULL, none, starts, no, world), MPI_SUCCESS);
    CHECK_EQ(MPI_Alltoallv(NULL, none, starts, no, NULL, none, starts, no, world), MPI_SUCCESS);
    CHECK_EQ(class_of(MPI_Alltoallv(&out, others, starts, no, &in, others, starts, no, world)), MPI_ERR_TYPE);
}

static int refuse(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)key, (void)extra, (void)in, (void)out, (void)flag;
    return MPI_ERR_OTHER;
}

static int refuse_type(MPI_Datatype type, int key, void *extra, void *in, void *out, int *flag) {
    (void)type, (void)key, (void)extra, (void)in, (void)out, (void)flag;
    return MPI_ERR_OTHER;
}

// What was to be made is a NULL handle after a failure.
static void null_handles(void) {
    int key, period = 0, extent = 2 * size;
    MPI_Comm parent, made = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    MPI_Comm_create_keyval(refuse, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(parent, key, &key);
    CHECK_EQ(class_of(MPI_Comm_dup(parent, &made)), MPI_ERR_OTHER);
    CHECK(made == MPI_COMM_NULL);
    made = MPI_COMM_WORLD;
    CHECK_EQ(class_of(MPI_Comm_dup_with_info(parent, MPI_INFO_NULL, &made)), MPI_ERR_OTHER);
    CHECK(made == MPI_COMM_NULL);
    MPI_Comm_free_keyval(&key);
    made = MPI_COMM_WORLD;
    CHECK(MPI_Cart_create(parent, 1, &extent, &period, 0, &made) != MPI_SUCCESS);
    CHECK(made == MPI_COMM_NULL);
    MPI_Comm_free(&parent);
    MPI_Datatype type, twin = MPI_INT;
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_create_keyval(refuse_type, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
    MPI_Type_set_attr(type, key, &key);
    CHECK_EQ(class_of(MPI_Type_dup(type, &twin)), MPI_ERR_OTHER);
    CHECK(twin == MPI_DATATYPE_NULL);
    MPI_Type_free_keyval(&key);
    MPI_Type_free(&type);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    errors_without_object();
    no_type();
    no_type_of_parts();
    null_handles();
    return finish();
}
