// A program may use as many files as it likes, raise and lower its limit, and close all descriptors that it finds:
// its files stay its files, and messages arrive.
//# ranks: 4
//# abi: mpi5
//# timeout: 60
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
enum { FEW = 1400, MANY = 20000, LENGTH = 3000 };

static int files[MANY], count;
static struct rlimit limit;
static struct stat own;
static const char *name;

/* Opens files, up to so many. The position in each is its number among them. */
static void open_files(int wanted) {
    // Where the hard limit is low it is for connections too.
    if (wanted > (int)(limit.rlim_max / 3)) wanted = limit.rlim_max / 3;
    while (count < wanted) {
        int file = open(name, O_RDONLY);
        CHECK(file >= 0);
        CHECK_EQ(lseek(file, count, SEEK_SET), count);
        files[count++] = file;
    }
}

/* Every file is still the one that was opened. */
static void check_files(void) {
    for (int index = 0; index < count; index++) {
        struct stat now;
        CHECK_EQ(fstat(files[index], &now), 0);
        CHECK_EQ(now.st_ino, own.st_ino);
        CHECK_EQ(now.st_dev, own.st_dev);
        CHECK_EQ(lseek(files[index], 0, SEEK_CUR), index);
    }
}

/* Messages between all, short and long, while files are looked at. */
static void talk(int round) {
    static int out[LENGTH], in[LENGTH];
    for (int length = 1; length <= LENGTH; length += LENGTH - 1)
        for (int step = 0; step < size; step++) {
            int to = (rank + step) % size, from = (rank + size - step) % size;
            for (int index = 0; index < length; index++) out[index] = round * 100 + rank;
            MPI_Sendrecv(out, length, MPI_INT, to, round, in, length, MPI_INT, from, round,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK_EQ(in[length - 1], round * 100 + from);
        }
    int sum;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(sum, size * (size - 1) / 2);
    check_files();
}

static void set_limit(rlim_t soft) {
    struct rlimit changed = {soft < limit.rlim_max ? soft : limit.rlim_max, limit.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &changed), 0);
}

/* One rank has files where the network had its descriptors. They stay whole while it waits, and it goes on when they
 * are closed. */
static void stand_in_the_way(void) {
    int in, neighbour = rank ^ 1, done = 0;
    MPI_Request requests[2];
    if (rank == 1) {
        closefrom(3);
        count = 0;
        open_files(MANY);
    }
    MPI_Irecv(&in, 1, MPI_INT, neighbour, 8, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&rank, 1, MPI_INT, neighbour, 8, MPI_COMM_WORLD, &requests[1]);
    for (int look = 0; look < 50 && !done; look++) {
        MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
        usleep(1000);
    }
    check_files();
    while (rank == 1 && count > 500) close(files[--count]);
    if (!done) MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK_EQ(in, neighbour);
}

int main(int argc, char **argv) {
    name = argv[0];
    getrlimit(RLIMIT_NOFILE, &limit);
    CHECK_EQ(stat(name, &own), 0);
    start(&argc, &argv);
    // A raised limit leads where the network has its numbers; only some pairs have talked by then.
    set_limit(1 << 16);
    open_files(FEW);
    check_files();
    talk(1);
    if (rank % 2 == 0) open_files(MANY);
    check_files();
    talk(2);
    if (rank == size - 1) {
        closefrom(3);
        count = 0;
    }
    talk(3);
    // Files of the program come before the next message.
    if (rank == 1) {
        closefrom(3);
        count = 0;
        open_files(FEW / 2);
    }
    talk(4);
    if (rank == 0) {
        for (int file = 3; file < 3000; file++) close(file);
        count = 0;
    }
    talk(5);
    set_limit(200);
    talk(6);
    set_limit(1 << 16);
    open_files(FEW);
    talk(7);
    stand_in_the_way();
    talk(9);
    MPI_Finalize();
    return 0;
}
