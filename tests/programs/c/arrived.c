// A receive that is started when its message is there already: complete at once, with the right
// status and error, never before an older receive, and as freeable as any other.
//# ranks: 2
//# progress: steal, none, thread, ghost
#include "check.h"

/* Both ranks have come here, and what was sent before lies at the receiver. */
static void meet(void) { MPI_Barrier(MPI_COMM_WORLD); }

static void send_int(int value, int tag) { MPI_Send(&value, 1, MPI_INT, 1, tag, MPI_COMM_WORLD); }

static void older_receives_come_first(void) {
    int first = 0, second = 0;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    if (rank == 1) MPI_Irecv(&first, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &requests[0]);
    meet();
    if (rank == 0) send_int(1, 7), send_int(2, 7);
    meet();
    if (rank == 0) return;
    MPI_Irecv(&second, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    CHECK_EQ(first, 1);
    CHECK_EQ(second, 2);
    CHECK_EQ(statuses[1].MPI_SOURCE, 0);
    CHECK_EQ(statuses[1].MPI_TAG, 7);
}

static void stored_messages_come_first(void) {
    int values[3];
    if (rank == 0) send_int(1, 8), send_int(2, 9);
    meet();
    if (rank == 0) send_int(3, 8);
    meet();
    if (rank == 0) return;
    MPI_Request requests[3];
    MPI_Probe(0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* stores the message with tag 8 */
    for (int i = 0; i < 3; i++) MPI_Irecv(&values[i], 1, MPI_INT, 0, i == 1 ? 9 : 8, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3; i++) CHECK_EQ(values[i], i + 1);
}

static void every_way_to_end(void) {
    int value = 0, flag, count;
    if (rank == 0) for (int i = 0; i < 4; i++) send_int(i, i);
    meet();
    if (rank == 0) return;
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
    MPI_Request_get_status(request, &flag, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(!flag && count == 1);
    CHECK(request == MPI_REQUEST_NULL);

    MPI_Irecv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
    do MPI_Test(&request, &flag, &status);
    while (!flag);
    CHECK_EQ(value, 1);

    MPI_Irecv(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL);

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    char small[2];
    MPI_Irecv(small, 2, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &request);
    CHECK_EQ(class_of(MPI_Wait(&request, &status)), MPI_ERR_TRUNCATE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    for (int i = 0; i < 100; i++) {
        older_receives_come_first();
        stored_messages_come_first();
        every_way_to_end();
    }
    return finish();
}
