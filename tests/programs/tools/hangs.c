/* Programs that hang, each for another reason: `hangs REASON`, on 4 ranks. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LONG (1 << 20)

static int me, size, value = 1;
static char *long_message;

static void receive(int from, int tag, MPI_Comm comm)
{
    MPI_Recv(&value, 1, MPI_INT, from, tag, comm, MPI_STATUS_IGNORE);
}

static void send(int to, int tag, MPI_Comm comm)
{
    MPI_Send(&value, 1, MPI_INT, to, tag, comm);
}

/* Rank 0 does not send what rank 1 waits for, and waits itself. */
static void lost_message(void)
{
    if (me == 1)
        receive(0, 7, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void cyclic_sends(void)
{
    MPI_Send(long_message, LONG, MPI_CHAR, (me + 1) % size, 5, MPI_COMM_WORLD);
    MPI_Recv(long_message, LONG, MPI_CHAR, (me + size - 1) % size, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void missing_rank(void)
{
    if (me != 2)
        MPI_Barrier(MPI_COMM_WORLD);
}

static void wrong_communicator(void)
{
    MPI_Comm rows;
    MPI_Comm_dup(MPI_COMM_WORLD, &rows);
    MPI_Comm_set_name(rows, "rows");
    if (me == 0)
        send(1, 7, MPI_COMM_WORLD);
    if (me == 1)
        receive(0, 7, rows);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void wrong_tag(void)
{
    if (me == 0)
        send(1, 43, MPI_COMM_WORLD);
    if (me == 1)
        receive(0, 42, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Ranks 0 and 1 each hold the lock that the other one wants. */
static void lock_cycle(void)
{
    int *memory, other = 1 - me;
    MPI_Win win;
    MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    if (me < 2) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, win);
        MPI_Put(&value, 1, MPI_INT, me, 0, 1, MPI_INT, win);
        MPI_Win_flush(me, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (me < 2) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, win);
        MPI_Put(&value, 1, MPI_INT, other, 0, 1, MPI_INT, win);
        MPI_Win_flush(other, win);
        MPI_Win_unlock(other, win);
        MPI_Win_unlock(me, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A collective of all that only some call, while the others wait for one of them. */
static void subset(void)
{
    int sum;
    if (me < 2)
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    else
        receive(me - 2, 1, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The first receive may take the message that the second one needs. */
static void wildcard_race(void)
{
    if (me == 2)
        send(0, 1, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0)
        receive(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD);
    /* Without this the program hangs only if the message of rank 2 comes first. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 1)
        send(0, 1, MPI_COMM_WORLD);
    if (me == 0)
        receive(2, 1, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Requests that nobody answers. */
static void unanswered(void)
{
    MPI_Request requests[2];
    int other = size - 1 - me, buffers[2];
    MPI_Irecv(&buffers[0], 1, MPI_INT, other, 11, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&buffers[1], 1, MPI_INT, MPI_ANY_SOURCE, 12, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* A nonblocking collective of which one rank waits for another one's message first. */
static void late_in_collective(void)
{
    MPI_Request request;
    int sum;
    if (me == size - 1)
        receive(0, 1, MPI_COMM_WORLD);
    MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (me == 0)
        send(size - 1, 1, MPI_COMM_WORLD);
}

/* One rank does not come to an operation on a file that is under way. */
static void missing_in_file(void)
{
    MPI_File file;
    MPI_Request request;
    MPI_File_open(MPI_COMM_WORLD, "/dev/shm/hangs-file", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_Barrier(MPI_COMM_WORLD);
    unlink("/dev/shm/hangs-file");
    if (me != 3) {
        MPI_File_iwrite_at_all(file, (MPI_Offset)me * LONG, long_message, LONG, MPI_CHAR, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 2 does not come to a collective call on a file. */
static void file_open(void)
{
    MPI_File file;
    if (me != 2)
        MPI_File_open(MPI_COMM_WORLD, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file);
}

static MPI_File opened(void)
{
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    return file;
}

static void file_close(void)
{
    MPI_File file = opened();
    if (me != 2)
        MPI_File_close(&file);
}

static void file_set_view(void)
{
    MPI_File file = opened();
    if (me != 2)
        MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
}

static void file_write_all(void)
{
    MPI_File file = opened();
    if (me != 2)
        MPI_File_write_all(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
}

static void file_write_ordered(void)
{
    MPI_File file = opened();
    if (me != 2)
        MPI_File_write_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
}

/* Partitions that nobody marks: all but the first of three. */
static void partitions(void)
{
    MPI_Request requests[2];
    int to = (me + 1) % size, from = (me + size - 1) % size;
    MPI_Psend_init(long_message, 3, 100, MPI_CHAR, to, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Precv_init(long_message + 300, 3, 100, MPI_CHAR, from, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    MPI_Startall(2, requests);
    MPI_Pready(0, requests[0]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* A partitioned receive without a send. */
static void partitions_lost(void)
{
    MPI_Request request;
    if (me == 1) {
        MPI_Precv_init(long_message, 4, 8, MPI_CHAR, 0, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* All send to one neighbour and receive from it, too. */
static void sendrecv(void)
{
    int right = (me + 1) % size;
    MPI_Sendrecv(long_message, LONG / 2, MPI_CHAR, right, 3, long_message + LONG / 2, LONG / 2, MPI_CHAR, right, 3,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    struct {
        const char *name;
        void (*run)(void);
    } reasons[] = {
        {"lost_message", lost_message},
        {"cyclic_sends", cyclic_sends},
        {"missing_rank", missing_rank},
        {"wrong_communicator", wrong_communicator},
        {"wrong_tag", wrong_tag},
        {"lock_cycle", lock_cycle},
        {"subset", subset},
        {"wildcard_race", wildcard_race},
        {"unanswered", unanswered},
        {"late_in_collective", late_in_collective},
        {"missing_in_file", missing_in_file},
        {"file_open", file_open},
        {"file_close", file_close},
        {"file_set_view", file_set_view},
        {"file_write_all", file_write_all},
        {"file_write_ordered", file_write_ordered},
        {"partitions", partitions},
        {"partitions_lost", partitions_lost},
        {"sendrecv", sendrecv},
    };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long_message = calloc(1, LONG);
    for (unsigned i = 0; argc > 1 && i < sizeof reasons / sizeof *reasons; i++)
        if (strcmp(argv[1], reasons[i].name) == 0)
            reasons[i].run();
    MPI_Finalize();
    return 0;
}
