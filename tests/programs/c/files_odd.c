// Odd uses give right bytes: overlapping and mixed views, members without data, holes, the end of a file that another
// process lengthens, one file opened many times, calls of more than 2 GiB, and offsets above 2^40.
//# ranks: 1 4
//# abi: mpich mpi5 openmpi
//# stdout: passed
#include "check.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COUNT = 3000, MOST = 1 << 18 };

static char name[64];
static unsigned char out[MOST], in[MOST], image[MOST];

/* The byte that a rank writes as its `at`th. */
static unsigned char value(int who, long at) {
    return (unsigned char)(who * 37 + at * 11 + at / 251 + 1);
}

static MPI_File opened(MPI_Comm comm, int mode) {
    MPI_File file;
    CHECK_EQ(MPI_File_open(comm, name, mode, MPI_INFO_NULL, &file), MPI_SUCCESS);
    return file;
}

static void counted(const MPI_Status *status, long bytes) {
    MPI_Count found = -1;
    MPI_Get_elements_x(status, MPI_BYTE, &found);
    CHECK_EQ(found, bytes);
}

/* What the file has, by the kernel. */
static long contents(void) {
    int fd = open(name, O_RDONLY);
    CHECK(fd >= 0);
    long bytes = pread(fd, in, MOST, 0);
    close(fd);
    return bytes;
}

static void forget(MPI_File *file) {
    CHECK_EQ(MPI_File_close(file), MPI_SUCCESS);
    if (rank == 0) CHECK_EQ(unlink(name), 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Members write the same bytes: each byte is that of one of them. */
static void overlapping(void) {
    MPI_File file = opened(MPI_COMM_WORLD, MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Status status;
    for (int atomic = 0; atomic < 2; atomic++) {
        CHECK_EQ(MPI_File_set_atomicity(file, atomic), MPI_SUCCESS);
        memset(out, rank + 1, sizeof out);
        CHECK_EQ(MPI_File_write_at_all(file, rank * 500, out, COUNT, MPI_BYTE, &status), MPI_SUCCESS);
        counted(&status, COUNT);
        MPI_File_sync(file);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_EQ(contents(), (size - 1) * 500 + COUNT);
        for (int at = 0; at < (size - 1) * 500 + COUNT; at++) {
            int who = in[at] - 1;
            CHECK(who >= 0 && who < size && who * 500 <= at && at < who * 500 + COUNT);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    forget(&file);
}

/* Each member has another view: blocks of a vector, an indexed type, a subarray, and one has no data. */
static void views(void) {
    MPI_File file = opened(MPI_COMM_WORLD, MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Datatype type, none;
    MPI_Status status;
    long base = 40000L * rank;
    int lengths[3] = {7, 0, 9}, places[3] = {3, 20, 30}, sizes[2] = {20, 30}, parts[2] = {5, 6}, starts[2] = {2, 3};
    switch (rank % 4) {
    case 0: MPI_Type_vector(10, 3, 17, MPI_BYTE, &type); break;
    case 1: MPI_Type_indexed(3, lengths, places, MPI_BYTE, &type); break;
    case 2: MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_BYTE, &type); break;
    default: MPI_Type_contiguous(1, MPI_BYTE, &type);
    }
    MPI_Type_commit(&type);
    MPI_Type_contiguous(0, MPI_BYTE, &none);
    MPI_Type_commit(&none);
    CHECK_EQ(MPI_File_set_view(file, base, MPI_BYTE, type, "native", MPI_INFO_NULL), MPI_SUCCESS);
    int count = rank % 4 == 3 ? 0 : COUNT;
    for (int at = 0; at < COUNT; at++) out[at] = value(rank, at);
    CHECK_EQ(MPI_File_write_all(file, out, count, MPI_BYTE, &status), MPI_SUCCESS);
    counted(&status, count);
    CHECK_EQ(MPI_File_write_all(file, out, 5, none, &status), MPI_SUCCESS);
    counted(&status, 0);
    memset(in, 0, COUNT);
    CHECK_EQ(MPI_File_read_at_all(file, 0, in, count, MPI_BYTE, &status), MPI_SUCCESS);
    counted(&status, count);
    CHECK(memcmp(in, out, count) == 0);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    // The same by hand: the place of each byte, gaps are zero.
    memset(image, 0, sizeof image);
    long end = 0;
    for (int who = 0; who < size; who++)
        for (int at = 0; at < COUNT && who % 4 != 3; at++) {
            long place = 40000L * who;
            switch (who % 4) {
            case 0: place += at / 30 * (9 * 17 + 3) + at % 30 / 3 * 17 + at % 3; break;
            case 1: place += at / 16 * 36 + (at % 16 < 7 ? 3 + at % 16 : 30 + at % 16 - 7); break;
            case 2: place += at / 30 * 600 + (2 + at % 30 / 6) * 30 + 3 + at % 6; break;
            default: break;
            }
            image[place] = value(who, at);
            end = place >= end ? place + 1 : end;
        }
    CHECK_EQ(contents(), end);
    CHECK(memcmp(in, image, end) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Type_free(&type);
    MPI_Type_free(&none);
    forget(&file);
}

/* A hole is zeros, the end is where others have put it, and a collective read may lie on both sides of it. */
static void ends(void) {
    MPI_File file = opened(MPI_COMM_WORLD, MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Status status;
    MPI_Offset bytes = -1;
    CHECK_EQ(MPI_File_set_size(file, 100000), MPI_SUCCESS);
    memset(in, 7, sizeof in);
    CHECK_EQ(MPI_File_read_at_all(file, 1000L * rank, in, 50000, MPI_BYTE, &status), MPI_SUCCESS);
    counted(&status, 50000);
    for (int at = 0; at < 50001; at++) CHECK_EQ(in[at], at < 50000 ? 0 : 7);
    // Interleaved blocks of members, the file ends in the midst of one.
    MPI_Datatype block;
    MPI_Type_vector(1, 64, 64, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, 64 * size, &block);
    MPI_Type_commit(&block);
    CHECK_EQ(MPI_File_set_view(file, 64 * rank, MPI_BYTE, block, "native", MPI_INFO_NULL), MPI_SUCCESS);
    long mine = 100000 / (64 * size) * 64, rest = 100000 % (64 * size) - 64 * rank;
    mine += rest < 0 ? 0 : rest > 64 ? 64 : rest;
    CHECK_EQ(MPI_File_read_at_all(file, 0, in, 120000, MPI_BYTE, &status), MPI_SUCCESS);
    counted(&status, mine);
    // Another process lengthens the file.
    if (rank == 0) {
        char command[128];
        snprintf(command, sizeof command, "printf 0123456789 >> /dev/shm/%s", name);
        CHECK_EQ(system(command), 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), MPI_SUCCESS);
    CHECK_EQ(MPI_File_get_size(file, &bytes), MPI_SUCCESS);
    CHECK_EQ(bytes, 100010);
    CHECK_EQ(MPI_File_read_at_all(file, 100000 + rank, in, 100, MPI_BYTE, &status), MPI_SUCCESS);
    counted(&status, 10 - rank);
    CHECK(memcmp(in, "0123456789" + rank, 10 - rank) == 0);
    CHECK_EQ(MPI_File_seek(file, -3, MPI_SEEK_END), MPI_SUCCESS);
    CHECK_EQ(MPI_File_read_all(file, in, 100, MPI_BYTE, &status), MPI_SUCCESS);
    counted(&status, 3);
    CHECK(memcmp(in, "789", 3) == 0);
    MPI_Type_free(&block);
    forget(&file);
}

/* One file, opened by each rank for itself, by halves of the world, and by all, at the same time. */
static void many(void) {
    MPI_File all = opened(MPI_COMM_WORLD, MPI_MODE_CREATE | MPI_MODE_RDWR), half, self;
    MPI_Comm part;
    MPI_Status status;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
    half = opened(part, MPI_MODE_RDWR);
    self = opened(MPI_COMM_SELF, MPI_MODE_RDWR);
    for (int at = 0; at < COUNT; at++) out[at] = value(rank, at);
    MPI_Datatype block;
    MPI_Type_create_resized(MPI_BYTE, 0, 3 * size, &block);
    MPI_Type_commit(&block);
    MPI_File files[3] = {all, half, self};
    for (int which = 0; which < 3; which++)
        CHECK_EQ(MPI_File_set_view(files[which], 3 * rank + which, MPI_BYTE, block, "native", MPI_INFO_NULL),
                 MPI_SUCCESS);
    CHECK_EQ(MPI_File_write_all(self, out, COUNT, MPI_BYTE, &status), MPI_SUCCESS);
    counted(&status, COUNT);
    CHECK_EQ(MPI_File_write_all(half, out, COUNT, MPI_BYTE, &status), MPI_SUCCESS);
    counted(&status, COUNT);
    CHECK_EQ(MPI_File_write_all(all, out, COUNT, MPI_BYTE, &status), MPI_SUCCESS);
    counted(&status, COUNT);
    CHECK_EQ(MPI_File_close(&self), MPI_SUCCESS);
    CHECK_EQ(MPI_File_close(&half), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(contents(), 3L * size * COUNT);
    for (long at = 0; at < 3L * size * COUNT; at++) CHECK_EQ(in[at], value(at % (3 * size) / 3, at / (3 * size)));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Type_free(&block);
    MPI_Comm_free(&part);
    forget(&all);
}

/* More than the kernel takes at once, of memory that all reads as zeros, and places that need more than 40 bits. */
static void large(void) {
    const MPI_Count bytes = (3L << 30) + 5;
    MPI_File file;
    MPI_Status status;
    MPI_Offset end = -1;
    void *memory = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, "/dev/null", MPI_MODE_WRONLY, MPI_INFO_NULL, &file), MPI_SUCCESS);
#ifndef OPEN_MPI
    CHECK_EQ(MPI_File_write_at_c(file, 0, memory, bytes, MPI_BYTE, &status), MPI_SUCCESS);
    counted(&status, bytes);
#endif
    MPI_Datatype gib, all, parts[2] = {MPI_DATATYPE_NULL, MPI_BYTE};
    MPI_Type_contiguous(1 << 30, MPI_BYTE, &gib);
    MPI_Type_commit(&gib);
    parts[0] = gib;
    MPI_Type_create_struct(2, (int[]){3, 5}, (MPI_Aint[]){0, 3L << 30}, parts, &all);
    MPI_Type_commit(&all);
    CHECK_EQ(MPI_File_write_at_all(file, (MPI_Offset)rank << 42, memory, 1, all, &status), MPI_SUCCESS);
    counted(&status, bytes);
    CHECK_EQ(MPI_File_write_all(file, memory, 3, gib, &status), MPI_SUCCESS);
    counted(&status, 3L << 30);
    int whole = -1;
    MPI_Get_count(&status, gib, &whole);
    CHECK_EQ(whole, 3);
    MPI_Get_count(&status, MPI_BYTE, &whole);
    CHECK_EQ(whole, MPI_UNDEFINED);
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    munmap(memory, bytes);
    // The last bytes of a sparse file.
    file = opened(MPI_COMM_WORLD, MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Offset far = (1L << 42) + 12345;
    for (int at = 0; at < COUNT; at++) out[at] = value(rank, at);
    CHECK_EQ(MPI_File_set_view(file, far, gib, gib, "native", MPI_INFO_NULL), MPI_SUCCESS);
    CHECK_EQ(MPI_File_get_byte_offset(file, 1000, &end), MPI_SUCCESS);
    CHECK_EQ(end, far + (1000L << 30));
    CHECK_EQ(MPI_File_set_view(file, far, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), MPI_SUCCESS);
    CHECK_EQ(MPI_File_write_at_all(file, (MPI_Offset)rank * COUNT, out, COUNT, MPI_BYTE, &status), MPI_SUCCESS);
    counted(&status, COUNT);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    int peer = (rank + 1) % size;
    CHECK_EQ(MPI_File_read_at_all(file, (MPI_Offset)peer * COUNT, in, COUNT, MPI_BYTE, &status), MPI_SUCCESS);
    for (int at = 0; at < COUNT; at++) CHECK_EQ(in[at], value(peer, at));
    CHECK_EQ(MPI_File_get_size(file, &end), MPI_SUCCESS);
    CHECK_EQ(end, far + (MPI_Offset)size * COUNT);
    MPI_Type_free(&gib);
    MPI_Type_free(&all);
    forget(&file);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK_EQ(chdir("/dev/shm"), 0);
    if (rank == 0) snprintf(name, sizeof name, "files-odd-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    overlapping();
    views();
    ends();
    many();
    large();
    return finish();
}
