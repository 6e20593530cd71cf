// Buffers of communicators, sessions and the process: which one a buffered send uses, automatic
// buffering, flushes with requests, and what is refused.
//# ranks: 1 2
//# progress: all
#include "check.h"
enum { COUNT = 5000 };
static int out[COUNT], in[COUNT];
static char space[COUNT * sizeof(int) + MPI_BSEND_OVERHEAD];

static int try_send(MPI_Comm comm) {
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return class_of(MPI_Bsend(out, COUNT, MPI_INT, (rank + 1) % size, 1, comm));
}

static void take(MPI_Comm comm) {
    memset(in, 0, sizeof in);
    MPI_Recv(in, COUNT, MPI_INT, (rank + size - 1) % size, 1, comm, MPI_STATUS_IGNORE);
    for (int i = 0; i < COUNT; i++) CHECK_EQ(in[i], i);
}

static void of_communicators(void) {
    MPI_Comm comm;
    MPI_Request request;
    void *back;
    int bytes;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    CHECK_EQ(try_send(comm), MPI_ERR_BUFFER);
    MPI_Comm_attach_buffer(comm, space, sizeof space);
    CHECK_EQ(class_of(MPI_Comm_attach_buffer(comm, space, sizeof space)), MPI_ERR_BUFFER);
    CHECK_EQ(try_send(MPI_COMM_WORLD), MPI_ERR_BUFFER);
    CHECK_EQ(try_send(comm), MPI_SUCCESS);
    take(comm);
    MPI_Comm_iflush_buffer(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(request == MPI_REQUEST_NULL);
    MPI_Comm_flush_buffer(comm);
    MPI_Comm_detach_buffer(comm, &back, &bytes);
    CHECK(back == space);
    CHECK_EQ(bytes, (int)sizeof space);
    MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0);
    CHECK_EQ(try_send(comm), MPI_SUCCESS);
    CHECK_EQ(try_send(comm), MPI_SUCCESS);
    take(comm);
    take(comm);
    MPI_Comm_free(&comm);
    /* A communicator that may get the handle of the old one has no buffer. */
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    CHECK_EQ(try_send(comm), MPI_ERR_BUFFER);
    MPI_Comm_free(&comm);
}

static void of_sessions(void) {
    MPI_Session session;
    MPI_Group group, part;
    MPI_Comm comm, copy;
    MPI_Request request;
    void *back;
    int bytes;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Group_union(group, MPI_GROUP_EMPTY, &part);
    MPI_Comm_create_from_group(part, "buffers", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_Comm_dup(comm, &copy);
    CHECK_EQ(try_send(copy), MPI_ERR_BUFFER);
    MPI_Session_attach_buffer(session, space, sizeof space);
    CHECK_EQ(try_send(MPI_COMM_WORLD), MPI_ERR_BUFFER);
    CHECK_EQ(try_send(copy), MPI_SUCCESS);
    take(copy);
    MPI_Session_iflush_buffer(session, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Session_flush_buffer(session);
    /* A communicator's own buffer comes first: here it is too small. */
    MPI_Comm_attach_buffer(copy, in, 8);
    CHECK_EQ(try_send(copy), MPI_ERR_BUFFER);
    MPI_Comm_detach_buffer(copy, &back, &bytes);
    MPI_Session_detach_buffer(session, &back, &bytes);
    CHECK(back == space);
    MPI_Group_free(&group);
    MPI_Group_free(&part);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    for (int i = 0; i < COUNT; i++) out[i] = i;
    of_communicators();
    of_sessions();
    MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
    CHECK_EQ(try_send(MPI_COMM_WORLD), MPI_SUCCESS);
    take(MPI_COMM_WORLD);
    void *back;
    int bytes;
    MPI_Buffer_detach(&back, &bytes);
    CHECK(back == MPI_BUFFER_AUTOMATIC);
    /* A buffer that is too long for an int to say stays, until it is asked for with a longer count. */
    MPI_Count count;
    MPI_Buffer_attach_c(out, (MPI_Count)3 << 30);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_EQ(class_of(MPI_Buffer_detach(&back, &bytes)), MPI_ERR_ARG);
    MPI_Buffer_detach_c(&back, &count);
    CHECK(back == out && count == (MPI_Count)3 << 30);
    return finish();
}
