// What a wrong program gets to hear: NULL where a result belongs or data begins, send and receive buffers that
// overlap, objects that are predefined or gone, collectives that are freed while they are under way.
//# ranks: 2
#include "check.h"
#define IS(class, call) CHECK_EQ(class_of(call), class)
static int one[64], two[64], other;
static const MPI_Comm world = MPI_COMM_WORLD;

static void null_results(void) {
    MPI_Datatype type;
    MPI_Group group;
    MPI_Status status;
    int flag, value;
    MPI_Comm_group(world, &group);
    IS(MPI_ERR_ARG, MPI_Comm_rank(world, NULL));
    IS(MPI_ERR_ARG, MPI_Comm_size(world, NULL));
    IS(MPI_ERR_ARG, MPI_Comm_group(world, NULL));
    IS(MPI_ERR_ARG, MPI_Comm_dup(world, NULL));
    IS(MPI_ERR_ARG, MPI_Comm_split(world, 0, 0, NULL));
    IS(MPI_ERR_ARG, MPI_Comm_create(world, group, NULL));
    IS(MPI_ERR_ARG, MPI_Comm_get_attr(world, MPI_TAG_UB, NULL, &flag));
    IS(MPI_ERR_ARG, MPI_Comm_get_attr(world, MPI_TAG_UB, &value, NULL));
    IS(MPI_ERR_ARG, MPI_Comm_get_errhandler(world, NULL));
    IS(MPI_ERR_ARG, MPI_Group_rank(group, NULL));
    IS(MPI_ERR_ARG, MPI_Group_size(group, NULL));
    IS(MPI_ERR_ARG, MPI_Group_incl(group, 0, NULL, NULL));
    IS(MPI_ERR_ARG, MPI_Type_size(MPI_INT, NULL));
    IS(MPI_ERR_ARG, MPI_Type_contiguous(2, MPI_INT, NULL));
    IS(MPI_ERR_ARG, MPI_Type_commit(NULL));
    IS(MPI_ERR_ARG, MPI_Type_vector(1, 1, 1, MPI_INT, NULL));
    IS(MPI_ERR_ARG, MPI_Type_create_struct(1, &(int){1}, NULL, &(MPI_Datatype){MPI_INT}, &type));
    IS(MPI_ERR_ARG, MPI_Op_create(NULL, 1, NULL));
    IS(MPI_ERR_ARG, MPI_Info_create(NULL));
    IS(MPI_ERR_ARG, MPI_Get_count(&status, MPI_INT, NULL));
    IS(MPI_ERR_ARG, MPI_Isend(one, 1, MPI_INT, other, 0, world, NULL));
    IS(MPI_ERR_ARG, MPI_Irecv(one, 1, MPI_INT, other, 0, world, NULL));
    IS(MPI_ERR_ARG, MPI_Send_init(one, 1, MPI_INT, other, 0, world, NULL));
    IS(MPI_ERR_ARG, MPI_Ibarrier(world, NULL));
    IS(MPI_ERR_ARG, MPI_Iallreduce(one, two, 1, MPI_INT, MPI_SUM, world, NULL));
    IS(MPI_ERR_ARG, MPI_Iprobe(other, 0, world, NULL, &status));
    IS(MPI_ERR_ARG, MPI_Test(&(MPI_Request){MPI_REQUEST_NULL}, NULL, &status));
    IS(MPI_ERR_ARG, MPI_Pack_size(1, MPI_INT, world, NULL));
    IS(MPI_ERR_ARG, MPI_Pack(one, 1, MPI_INT, two, sizeof two, NULL, world));
    IS(MPI_ERR_ARG, MPI_Error_string(MPI_ERR_ARG, NULL, &value));
    IS(MPI_ERR_ARG, MPI_Initialized(NULL));
    IS(MPI_ERR_ARG, MPI_Win_create(one, 4, 1, MPI_INFO_NULL, world, NULL));
    IS(MPI_ERR_ARG, MPI_Dims_create(4, 2, NULL));
    MPI_Group_free(&group);
}

static void null_buffers(void) {
    int position = 0;
    IS(MPI_ERR_BUFFER, MPI_Send(NULL, 1, MPI_INT, other, 0, world));
    IS(MPI_ERR_BUFFER, MPI_Recv(NULL, 1, MPI_INT, other, 0, world, MPI_STATUS_IGNORE));
    IS(MPI_ERR_BUFFER, MPI_Bcast(NULL, 1, MPI_INT, 0, world));
    IS(MPI_ERR_BUFFER, MPI_Allreduce(NULL, one, 1, MPI_INT, MPI_SUM, world));
    IS(MPI_ERR_BUFFER, MPI_Allreduce(one, NULL, 1, MPI_INT, MPI_SUM, world));
    IS(MPI_ERR_BUFFER, MPI_Allgather(NULL, 1, MPI_INT, one, 1, MPI_INT, world));
    IS(MPI_ERR_BUFFER, MPI_Allgather(one, 1, MPI_INT, NULL, 1, MPI_INT, world));
    IS(MPI_ERR_BUFFER, MPI_Alltoall(one, 1, MPI_INT, NULL, 1, MPI_INT, world));
    IS(MPI_ERR_BUFFER, MPI_Scan(NULL, one, 1, MPI_INT, MPI_SUM, world));
    IS(MPI_ERR_BUFFER, MPI_Reduce_local(NULL, one, 1, MPI_INT, MPI_SUM));
    IS(MPI_ERR_BUFFER, MPI_Pack(NULL, 1, MPI_INT, two, sizeof two, &position, world));
    IS(MPI_ERR_BUFFER, MPI_Pack(one, 1, MPI_INT, NULL, sizeof two, &position, world));
    IS(MPI_ERR_BUFFER, MPI_Unpack(NULL, sizeof two, &position, one, 1, MPI_INT, world));
    IS(MPI_SUCCESS, MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, world));
    IS(MPI_SUCCESS, MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, world));
}

// Every member passes the same wrong buffers, so that nobody waits for the others.
static void overlaps(void) {
    int counts[2] = {1, 1}, displacements[2] = {0, 1};
    MPI_Request request;
    IS(MPI_ERR_BUFFER, MPI_Allreduce(one, one, 4, MPI_INT, MPI_SUM, world));
    IS(MPI_ERR_BUFFER, MPI_Allreduce(one, one + 3, 4, MPI_INT, MPI_SUM, world));
    IS(MPI_ERR_BUFFER, MPI_Iallreduce(one, one, 4, MPI_INT, MPI_SUM, world, &request));
    IS(MPI_ERR_BUFFER, MPI_Scan(one, one, 1, MPI_INT, MPI_SUM, world));
    IS(MPI_ERR_BUFFER, MPI_Reduce_scatter(one, one, counts, MPI_INT, MPI_SUM, world));
    IS(MPI_ERR_BUFFER, MPI_Reduce_scatter_block(one, one, 1, MPI_INT, MPI_SUM, world));
    IS(MPI_ERR_BUFFER, MPI_Reduce_local(one, one, 1, MPI_INT, MPI_SUM));
    IS(MPI_ERR_BUFFER, MPI_Reduce_local(one, one + 1, 2, MPI_INT, MPI_SUM));
    IS(MPI_ERR_BUFFER, MPI_Allgather(one, 1, MPI_INT, one, 1, MPI_INT, world));
    IS(MPI_ERR_BUFFER, MPI_Allgatherv(one, 1, MPI_INT, one, counts, displacements, MPI_INT, world));
    IS(MPI_ERR_BUFFER, MPI_Alltoall(one, 1, MPI_INT, one + 1, 1, MPI_INT, world));
    if (rank == 0) {
        MPI_Comm self = MPI_COMM_SELF;
        IS(MPI_ERR_BUFFER, MPI_Reduce(one, one, 1, MPI_INT, MPI_SUM, 0, self));
        IS(MPI_ERR_BUFFER, MPI_Gather(one, 1, MPI_INT, one, 1, MPI_INT, 0, self));
        IS(MPI_ERR_BUFFER, MPI_Scatter(one, 1, MPI_INT, one, 1, MPI_INT, 0, self));
    }
    // Side by side is right, and so is what has no bytes in common.
    IS(MPI_SUCCESS, MPI_Allreduce(one, one + 4, 4, MPI_INT, MPI_SUM, world));
    IS(MPI_SUCCESS, MPI_Allreduce(one, one, 0, MPI_INT, MPI_SUM, world));
    IS(MPI_SUCCESS, MPI_Reduce_local(one, one + 1, 1, MPI_INT, MPI_SUM));
    MPI_Datatype even;
    MPI_Type_vector(2, 1, 2, MPI_INT, &even);
    MPI_Type_commit(&even);
    IS(MPI_SUCCESS, MPI_Alltoall(one, 1, MPI_INT, two, 1, MPI_INT, world));
    IS(MPI_SUCCESS, MPI_Allgather(one, 1, even, one + 8, 2, MPI_INT, world));
    MPI_Type_free(&even);
    // Only the root's receive buffer counts.
    IS(MPI_SUCCESS, MPI_Reduce(one, rank == 0 ? two : one, 1, MPI_INT, MPI_SUM, 0, world));
}

static void gone(void) {
    MPI_Comm comm = MPI_COMM_WORLD, old;
    MPI_Datatype type = MPI_INT, old_type;
    MPI_Op op = MPI_SUM;
    MPI_Group group, old_group;
    MPI_Info info, old_info;
    int value;
    IS(MPI_ERR_COMM, MPI_Comm_free(&comm));
    comm = MPI_COMM_NULL;
    IS(MPI_ERR_COMM, MPI_Comm_free(&comm));
    IS(MPI_ERR_TYPE, MPI_Type_free(&type));
    IS(MPI_ERR_OP, MPI_Op_free(&op));
    MPI_Comm_dup(world, &comm);
    old = comm;
    MPI_Comm_free(&comm);
    IS(MPI_ERR_COMM, MPI_Comm_rank(old, &value));
    IS(MPI_ERR_COMM, MPI_Comm_free(&old));
    IS(MPI_ERR_COMM, MPI_Barrier(old));
    MPI_Type_contiguous(2, MPI_INT, &type);
    old_type = type;
    IS(MPI_ERR_TYPE, MPI_Send(one, 1, type, MPI_PROC_NULL, 0, world));
    MPI_Type_free(&type);
    IS(MPI_ERR_TYPE, MPI_Type_size(old_type, &value));
    IS(MPI_ERR_TYPE, MPI_Type_free(&old_type));
    MPI_Comm_group(world, &group);
    old_group = group;
    MPI_Group_free(&group);
    IS(MPI_ERR_GROUP, MPI_Group_size(old_group, &value));
    MPI_Info_create(&info);
    old_info = info;
    MPI_Info_free(&info);
    IS(MPI_ERR_INFO, MPI_Info_set(old_info, "a", "b"));
    IS(MPI_ERR_INFO, MPI_Info_free(&info));
}

static int failure;

static int fails(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    return failure;
}

static int copy_fails(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)key, (void)extra, (void)in, (void)out, (void)flag;
    return failure;
}

static int type_fails(MPI_Datatype type, int key, void *value, void *extra) {
    (void)type, (void)key, (void)value, (void)extra;
    return failure;
}

// What a callback returns is what the call returns that it was called in, and the object stays as it was.
static void failing_callbacks(void) {
    MPI_Comm comm, copy;
    MPI_Datatype type;
    int class, code, key, type_key, flag;
    void *value;
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    MPI_Comm_dup(world, &comm);
    MPI_Comm_create_keyval(copy_fails, fails, &key, NULL);
    MPI_Comm_set_attr(comm, key, one);
    failure = code;
    CHECK_EQ(MPI_Comm_set_attr(comm, key, two), code);
    CHECK_EQ(MPI_Comm_delete_attr(comm, key), code);
    CHECK_EQ(MPI_Comm_free(&comm), code);
    CHECK_EQ(MPI_Comm_dup(comm, &copy), code);
    IS(class, code);
    MPI_Comm_get_attr(comm, key, &value, &flag);
    CHECK(flag && value == one);
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, type_fails, &type_key, NULL);
    MPI_Type_set_attr(type, type_key, one);
    CHECK_EQ(MPI_Type_free(&type), code);
    CHECK(type != MPI_DATATYPE_NULL);
    failure = MPI_SUCCESS;
    IS(MPI_SUCCESS, MPI_Type_free(&type));
    IS(MPI_SUCCESS, MPI_Comm_free(&comm));
    MPI_Type_free_keyval(&type_key);
    MPI_Comm_free_keyval(&key);
}

// A collective under way is not freed, and its request stays.
static void free_of_active(void) {
    MPI_Comm ring;
    MPI_Cart_create(world, 1, &size, &(int){1}, 0, &ring);
    MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
    for (int kind = 0; kind < 3; kind++) {
        MPI_Request request;
        if (rank == 1) MPI_Recv(NULL, 0, MPI_INT, 0, 7, world, MPI_STATUS_IGNORE);
        for (int i = 0; i < 2; i++) one[i] = 10 * rank + i, two[i] = -1;
        if (kind == 0) MPI_Ineighbor_alltoall(one, 1, MPI_INT, two, 1, MPI_INT, ring, &request);
        if (kind == 1) MPI_Ineighbor_allgather(one, 1, MPI_INT, two, 1, MPI_INT, ring, &request);
        if (kind == 2) MPI_Iallgather(one, 1, MPI_INT, two, 1, MPI_INT, ring, &request);
        if (rank == 0) {
            IS(MPI_ERR_REQUEST, MPI_Request_free(&request));
            CHECK(request != MPI_REQUEST_NULL);
            MPI_Send(NULL, 0, MPI_INT, 1, 7, world);
        }
        IS(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int i = 0; i < 2; i++) CHECK_EQ(two[i], kind == 2 ? 10 * i : 10 * other + (kind == 0 ? 1 - i : 0));
    }
    MPI_Comm_free(&ring);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    other = 1 - rank;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    null_results();
    null_buffers();
    overlaps();
    gone();
    failing_callbacks();
    free_of_active();
    return finish();
}
