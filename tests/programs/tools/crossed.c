/* `crossed A B COUNT`: odd ranks call collectives A and B in another order than even ones. What a call has returned
   with must be right nevertheless: status 99 if it is not. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int me, size, count;
static int *out, *in;
static MPI_File file;

static void expect(int at, int value)
{
    if (in[at] != value) {
        fprintf(stderr, "wrong data: %d, not %d\n", in[at], value);
        MPI_Abort(MPI_COMM_WORLD, 99);
    }
}

/* A read or a write of all members of a file in which each has its own part. */
static void call_file(const char *name)
{
    MPI_Offset part = (MPI_Offset)me * count * (MPI_Offset)sizeof *out;
    MPI_Status status;
    if (strcmp(name, "file_write") == 0)
        MPI_File_write_at_all(file, part, out, count, MPI_INT, &status);
    if (strcmp(name, "file_read") == 0) {
        MPI_File_read_at_all(file, part, in, count, MPI_INT, &status);
        expect(0, me + 1);
    }
    if (strcmp(name, "file_iwrite") == 0) {
        MPI_Request request;
        MPI_File_iwrite_at_all(file, part, out, count, MPI_INT, &request);
        MPI_Wait(&request, &status);
    }
    if (strcmp(name, "file_ordered") == 0)
        MPI_File_write_ordered(file, out, count, MPI_INT, &status);
    if (strcmp(name, "file_sync") == 0)
        MPI_File_sync(file);
    if (strcmp(name, "file_size") == 0)
        MPI_File_set_size(file, (MPI_Offset)size * count * (MPI_Offset)sizeof *out);
    /* What was to be written is as it was. */
    in[0] = out[0];
    expect(0, me + 1);
}

/* A file with every member's part, for calls of a file. */
static void open_file(void)
{
    char name[64];
    int number = getpid();
    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "/dev/shm/crossed-file-%d", number);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
    MPI_Barrier(MPI_COMM_WORLD);
    unlink(name);
    for (int i = 0; i < count; i++)
        out[i] = me + 1;
    MPI_File_write_at_all(file, (MPI_Offset)me * count * (MPI_Offset)sizeof *out, out, count, MPI_INT,
                          MPI_STATUS_IGNORE);
}

/* A communicator of all members, or a window of theirs. */
static void make(const char *name)
{
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Win win = MPI_WIN_NULL;
    int periods = 0, next = (me + 1) % size, number = -1;
    void *base = in;
    if (strcmp(name, "comm_create") == 0) {
        MPI_Group group;
        MPI_Comm_group(MPI_COMM_WORLD, &group);
        MPI_Comm_create(MPI_COMM_WORLD, group, &made);
        MPI_Group_free(&group);
    }
    if (strcmp(name, "comm_split") == 0)
        MPI_Comm_split(MPI_COMM_WORLD, 0, me, &made);
    if (strcmp(name, "cart") == 0)
        MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periods, 0, &made);
    if (strcmp(name, "graph") == 0)
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &next, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED,
                                       MPI_INFO_NULL, 0, &made);
    if (strcmp(name, "win_create") == 0)
        MPI_Win_create(in, sizeof *in, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (strcmp(name, "win_allocate") == 0)
        MPI_Win_allocate(sizeof *in, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (strcmp(name, "win_shared") == 0)
        MPI_Win_allocate_shared(sizeof *in, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (strcmp(name, "win_dynamic") == 0)
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (made != MPI_COMM_NULL) {
        MPI_Comm_size(made, &number);
        in[0] = number;
        expect(0, size);
        MPI_Allreduce(out, in, 1, MPI_INT, MPI_SUM, made);
        expect(0, size * (size + 1) / 2);
        MPI_Comm_free(&made);
    }
    if (win != MPI_WIN_NULL)
        MPI_Win_free(&win);
}

static void call(const char *name)
{
    MPI_Comm comm = MPI_COMM_WORLD, copy;
    int sum = size * (size + 1) / 2;
    for (int i = 0; i < size * count; i++)
        out[i] = me + 1;
    memset(in, 0, size * count * sizeof *in);
    if (strncmp(name, "file_", 5) == 0)
        call_file(name);
    if (strcmp(name, "barrier") == 0)
        MPI_Barrier(comm);
    if (strcmp(name, "bcast") == 0) {
        in[0] = me + 1;
        MPI_Bcast(in, count, MPI_INT, 0, comm);
        expect(0, 1);
    }
    if (strcmp(name, "gather") == 0) {
        MPI_Gather(out, count, MPI_INT, in, count, MPI_INT, 0, comm);
        for (int i = 0; me == 0 && i < size; i++)
            expect(i * count, i + 1);
    }
    if (strcmp(name, "scatter") == 0) {
        MPI_Scatter(out, count, MPI_INT, in, count, MPI_INT, 0, comm);
        expect(0, 1);
    }
    if (strcmp(name, "allgather") == 0 || strcmp(name, "alltoall") == 0) {
        if (name[3] == 'g')
            MPI_Allgather(out, count, MPI_INT, in, count, MPI_INT, comm);
        else
            MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, comm);
        for (int i = 0; i < size; i++)
            expect(i * count, i + 1);
    }
    if (strcmp(name, "reduce") == 0) {
        MPI_Reduce(out, in, count, MPI_INT, MPI_SUM, 0, comm);
        if (me == 0)
            expect(0, sum);
    }
    if (strcmp(name, "allreduce") == 0) {
        MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, comm);
        expect(0, sum);
    }
    if (strcmp(name, "scan") == 0) {
        MPI_Scan(out, in, count, MPI_INT, MPI_SUM, comm);
        expect(0, (me + 1) * (me + 2) / 2);
    }
    if (strcmp(name, "dup") == 0) {
        MPI_Comm_dup(comm, &copy);
        MPI_Comm_free(&copy);
    }
    make(name);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    count = argc > 3 ? atoi(argv[3]) : 1;
    out = malloc(size * count * sizeof *out);
    in = malloc(size * count * sizeof *in);
    int has_file = strncmp(argv[1], "file_", 5) == 0;
    if (has_file)
        open_file();
    call(argv[1 + me % 2]);
    call(argv[2 - me % 2]);
    if (has_file)
        MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
