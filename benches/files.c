/* Files: reads and writes of all ranks, beside contiguous `pwrite` and `pread` of the same bytes by the same ranks.
 *   files FOLDER ROW [cpu]     ROW is one of the names in `run` below
 * Prints a line "name milliseconds" for each measurement, and one "name, floor milliseconds" for what the kernel takes.
 * With "cpu" they are those that the CPUs took for all ranks, which says more on a busy machine. A measurement whose
 * bytes were wrong, or that the MPI refused, is "inf". Bytes are checked once, outside of the time.
 */
#include <fcntl.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { REPEATS = 5, TOTAL = 32 << 20, WORD = 8 };
enum { SMALL = 1000, SMALL_WORDS = 8, TURNS = 200, TURN_WORDS = 512, OPENED = 100 };
typedef unsigned long word;
typedef void step(void);

static int rank, size;
static bool is_wrong, is_cpu;
static char path[512], floor_path[512];
static MPI_File file;
static int floor_file;
static MPI_Status status;

/* What a rank has: `words` words in memory `memory`, the i-th of which lies at memory[in_memory(i)] and is word
 * in_file(i) of the file. */
static struct {
    long words, room, block, local[3], start[3];
    MPI_Datatype filetype, memtype;
    MPI_Offset displacement;
    int count;
    long (*in_file)(long), (*in_memory)(long);
} at;
static word *memory, *flat;

static word value(long place) { return ((word)place + 1) * 0x9E3779B97F4A7C15UL | 1; }

static void call(int code) {
    if (code != MPI_SUCCESS) is_wrong = true;
}

static void *touched(long bytes) {
    void *room = malloc(bytes);
    if (!room) MPI_Abort(MPI_COMM_WORLD, 1);
    memset(room, 0, bytes);
    return room;
}

/* Layouts. */

enum { NX = 256, NY = 128, NZ = 128, GRID = 96, CELL = 5 };

static long same(long i) { return i; }
static long slab(long i) { return rank * at.words + i; }
static long interleaved(long i) { return (i / at.block * size + rank) * at.block + i % at.block; }
static long cube(long i) {
    long x = i % at.local[2], y = i / at.local[2] % at.local[1], z = i / at.local[2] / at.local[1];
    return ((at.start[0] + z) * NY + at.start[1] + y) * NX + at.start[2] + x;
}
static long cells(long i) {
    long wide = GRID / size, row = wide * CELL, cell = wide * GRID * row;
    long c = i / cell, x = i % row, y = i / row % GRID, z = i % cell / row / GRID;
    return ((c * wide + z) * GRID + y) * GRID * CELL + (c + rank) % size * row + x;
}
static long gapped_memory(long i) { return i / 8 * 10 + i % 8; }
static long gapped_file(long i) { return rank * 2 * at.words + i / 64 * 128 + i % 64; }

static void contiguous(void) {
    at.displacement = rank * at.words * WORD;
    at.in_file = slab;
}
static void blocks(void) {
    MPI_Type_vector((int)(at.words / at.block), (int)at.block, (int)at.block * size, MPI_DOUBLE, &at.filetype);
    at.displacement = rank * at.block * WORD;
    at.in_file = interleaved;
}
static void subarray(void) {
    int dims[3] = {0}, sizes[3] = {NZ, NY, NX}, parts[3], starts[3];
    MPI_Dims_create(size, 3, dims);
    int mine[3] = {rank / dims[0] / dims[1], rank / dims[0] % dims[1], rank % dims[0]};
    for (int d = 0; d < 3; d++) {
        parts[d] = sizes[d] / dims[2 - d]; /* most parts in the dimension that varies fastest */
        starts[d] = mine[d] * parts[d];
        at.local[d] = parts[d], at.start[d] = starts[d];
    }
    MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &at.filetype);
    at.words = (long)parts[0] * parts[1] * parts[2];
    at.in_file = cube;
}
/* As BTIO's: each rank has cells on a diagonal of a grid of points of five values. */
static void nested(void) {
    int wide = GRID / size, ones[64];
    MPI_Aint displacements[64];
    MPI_Datatype plane, cell;
    MPI_Type_vector(GRID, wide * CELL, GRID * CELL, MPI_DOUBLE, &plane);
    MPI_Type_create_hvector(wide, 1, (MPI_Aint)GRID * GRID * CELL * WORD, plane, &cell);
    for (int c = 0; c < size; c++) {
        ones[c] = 1;
        displacements[c] = ((MPI_Aint)c * wide * GRID * GRID + (c + rank) % size * wide) * CELL * WORD;
    }
    MPI_Type_create_hindexed(size, ones, displacements, cell, &at.filetype);
    MPI_Type_free(&plane);
    MPI_Type_free(&cell);
    at.words = (long)GRID * GRID * wide * CELL;
    at.in_file = cells;
}
static void holes_in_memory(void) {
    contiguous();
    MPI_Type_vector((int)(at.words / 8), 8, 10, MPI_DOUBLE, &at.memtype);
    MPI_Type_commit(&at.memtype);
    at.count = 1, at.room = at.words / 8 * 10, at.in_memory = gapped_memory;
}
static void holes_in_file(void) {
    MPI_Type_vector((int)(at.words / 64), 64, 128, MPI_DOUBLE, &at.filetype);
    at.displacement = rank * 2 * at.words * WORD;
    at.in_file = gapped_file;
}

/* Measuring. */

static int compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}
static double median(double *values) {
    qsort(values, REPEATS, sizeof *values, compare);
    return values[REPEATS / 2];
}
static double now(void) {
    struct timespec time;
    clock_gettime(is_cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}
/* Until the last rank has done its work; of CPU time, all ranks' together. */
static double timed(step *work) {
    double all;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now();
    work();
    if (!is_cpu) MPI_Barrier(MPI_COMM_WORLD);
    double mine = now() - start;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, is_cpu ? MPI_SUM : MPI_MAX, MPI_COMM_WORLD);
    return all;
}
static void nothing(void) {}

/* `prepare` comes before each of both; `check` after the first, and sets is_wrong. */
static void measure(const char *name, step *prepare, step *work, step *bare, step *check) {
    double times[REPEATS], floors[REPEATS];
    is_wrong = false;
    for (int repeat = -1; repeat < REPEATS; repeat++) {
        prepare();
        double least = timed(bare);
        prepare();
        double time = timed(work);
        if (repeat < 0) check();
        else times[repeat] = time, floors[repeat] = least;
        MPI_Allreduce(MPI_IN_PLACE, &is_wrong, 1, MPI_C_BOOL, MPI_LOR, MPI_COMM_WORLD);
        if (is_wrong) break;
    }
    if (rank != 0) return;
    printf("%s %.4f\n", name, is_wrong ? INFINITY : median(times));
    if (!is_wrong) printf("%s, floor %.4f\n", name, median(floors));
    fflush(stdout);
}

static void empty(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && (truncate(path, 0) || truncate(floor_path, 0))) is_wrong = true;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Large collective transfers. */

static void write_all(void) { call(MPI_File_write_at_all(file, 0, memory, at.count, at.memtype, &status)); }
static void read_all(void) { call(MPI_File_read_at_all(file, 0, memory, at.count, at.memtype, &status)); }
static void write_floor(void) {
    long bytes = at.words * WORD;
    if (pwrite(floor_file, flat, bytes, rank * bytes) != bytes) is_wrong = true;
}
static void read_floor(void) {
    long bytes = at.words * WORD;
    if (pread(floor_file, flat, bytes, rank * bytes) != bytes) is_wrong = true;
}
static void check_file(void) {
    int found = open(path, O_RDONLY);
    struct stat about;
    if (found < 0 || fstat(found, &about)) MPI_Abort(MPI_COMM_WORLD, 1);
    word *all = malloc(about.st_size + 1);
    if (!all || pread(found, all, about.st_size, 0) != about.st_size) MPI_Abort(MPI_COMM_WORLD, 1);
    for (long i = 0; i < at.words && !is_wrong; i++) {
        long place = at.in_file(i);
        is_wrong = (place + 1) * WORD > about.st_size || all[place] != value(place);
    }
    free(all);
    close(found);
}
static void check_memory(void) {
    for (long i = 0; i < at.words && !is_wrong; i++) is_wrong = memory[at.in_memory(i)] != value(at.in_file(i));
}

static void transfers(const char *name, step *layout) {
    char line[128];
    at.words = TOTAL / WORD / size;
    at.filetype = at.memtype = MPI_DOUBLE;
    at.in_memory = same;
    layout();
    if (!at.room) at.room = at.count = (int)at.words;
    memory = touched(at.room * WORD);
    flat = touched(at.words * WORD);
    for (long i = 0; i < at.words; i++) memory[at.in_memory(i)] = value(at.in_file(i));
    if (at.filetype != MPI_DOUBLE) MPI_Type_commit(&at.filetype);
    call(MPI_File_set_view(file, at.displacement, MPI_DOUBLE, at.filetype, "native", MPI_INFO_NULL));
    snprintf(line, sizeof line, "%s, write", name);
    measure(line, empty, write_all, write_floor, check_file);
    snprintf(line, sizeof line, "%s, rewrite", name);
    measure(line, nothing, write_all, write_floor, check_file);
    memset(memory, 0, at.room * WORD);
    snprintf(line, sizeof line, "%s, read", name);
    measure(line, nothing, read_all, read_floor, check_memory);
}

/* Many small ones. */

static void small_each(bool is_write, bool is_floor) {
    for (long i = 0; i < SMALL; i++) {
        word *from = memory + i * SMALL_WORDS;
        long offset = (i * size + rank) * SMALL_WORDS * WORD, bytes = SMALL_WORDS * WORD;
        if (!is_floor && is_write) call(MPI_File_write_at(file, offset, from, SMALL_WORDS, MPI_DOUBLE, &status));
        else if (!is_floor) call(MPI_File_read_at(file, offset, from, SMALL_WORDS, MPI_DOUBLE, &status));
        else if (is_write) is_wrong |= pwrite(floor_file, from, bytes, offset) != bytes;
        else is_wrong |= pread(floor_file, flat, bytes, offset) != bytes;
    }
}
static void small_writes(void) { small_each(true, false); }
static void small_writes_floor(void) { small_each(true, true); }
static void small_reads(void) { small_each(false, false); }
static void small_reads_floor(void) { small_each(false, true); }

static void small(void) {
    at.words = SMALL * SMALL_WORDS, at.block = SMALL_WORDS;
    at.in_file = interleaved, at.in_memory = same;
    memory = touched(at.words * WORD), flat = touched(at.words * WORD);
    for (long i = 0; i < at.words; i++) memory[i] = value(at.in_file(i));
    measure("1000 of 64 B, write", nothing, small_writes, small_writes_floor, check_file);
    memset(memory, 0, at.words * WORD);
    measure("1000 of 64 B, read", nothing, small_reads, small_reads_floor, check_memory);
}

/* Shared pointers: blocks whose words are all the same, each of which must be there once. */

static bool is_ordered;
static word *seen;

static void rewind_all(void) { call(MPI_File_seek_shared(file, 0, MPI_SEEK_SET)); }
static void turns_write(void) {
    for (long i = 0; i < TURNS; i++) {
        word *from = memory + i * TURN_WORDS;
        if (is_ordered) call(MPI_File_write_ordered(file, from, TURN_WORDS, MPI_DOUBLE, &status));
        else call(MPI_File_write_shared(file, from, TURN_WORDS, MPI_DOUBLE, &status));
    }
}
static void turns_read(void) {
    for (long i = 0; i < TURNS; i++) {
        word *to = memory + i * TURN_WORDS;
        if (is_ordered) call(MPI_File_read_ordered(file, to, TURN_WORDS, MPI_DOUBLE, &status));
        else call(MPI_File_read_shared(file, to, TURN_WORDS, MPI_DOUBLE, &status));
    }
}
static void turns_floor(bool is_write) {
    long bytes = TURN_WORDS * WORD;
    for (long i = 0; i < TURNS; i++) {
        word *from = flat + i * TURN_WORDS;
        long offset = (i * size + rank) * bytes;
        long moved = is_write ? pwrite(floor_file, from, bytes, offset) : pread(floor_file, from, bytes, offset);
        is_wrong |= moved != bytes;
        if (is_ordered) MPI_Barrier(MPI_COMM_WORLD);
    }
}
static void turns_write_floor(void) { turns_floor(true); }
static void turns_read_floor(void) { turns_floor(false); }

/* Notes the `many` blocks at `from`; `first` is the place of the first one, and -1 if that may be anywhere. */
static void see(const word *from, long many, long first) {
    for (long b = 0; b < many; b++, from += TURN_WORDS) {
        long tag = (long)from[0] - 1;
        if (tag < 0 || tag >= (long)TURNS * size || (first >= 0 && tag != first + b)) {
            is_wrong = true;
            return;
        }
        for (long i = 0; i < TURN_WORDS; i++) is_wrong |= from[i] != from[0];
        seen[tag]++;
    }
}
static void all_seen(void) {
    for (long tag = 0; tag < (long)TURNS * size; tag++) is_wrong |= seen[tag] != 1;
    memset(seen, 0, TURNS * size * WORD);
}
static void check_turns_written(void) {
    long bytes = (long)TURNS * size * TURN_WORDS * WORD;
    word *all = touched(bytes);
    int found = open(path, O_RDONLY);
    if (found < 0 || pread(found, all, bytes, 0) != bytes) is_wrong = true;
    else see(all, (long)TURNS * size, is_ordered ? 0 : -1), all_seen();
    close(found);
    free(all);
}
static void check_turns_read(void) {
    for (long i = 0; i < TURNS; i++) see(memory + i * TURN_WORDS, 1, is_ordered ? i * size + rank : -1);
    MPI_Allreduce(MPI_IN_PLACE, seen, TURNS * size, MPI_UNSIGNED_LONG, MPI_SUM, MPI_COMM_WORLD);
    all_seen();
}

static void turns(const char *name) {
    char line[128];
    is_ordered = strcmp(name, "ordered") == 0;
    at.words = TURNS * TURN_WORDS;
    memory = touched(at.words * WORD), flat = touched(at.words * WORD), seen = touched(TURNS * size * WORD);
    for (long i = 0; i < at.words; i++) memory[i] = i / TURN_WORDS * size + rank + 1;
    snprintf(line, sizeof line, "200 of 4 KB, %s, write", name);
    measure(line, rewind_all, turns_write, turns_write_floor, check_turns_written);
    memset(memory, 0, at.words * WORD);
    snprintf(line, sizeof line, "200 of 4 KB, %s, read", name);
    measure(line, rewind_all, turns_read, turns_read_floor, check_turns_read);
}

/* Opening and closing. */

static void opened_each(void) {
    char name[600];
    for (int i = 0; i < OPENED; i++) {
        MPI_File one;
        snprintf(name, sizeof name, "%s.%d", path, i);
        call(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &one));
        if (is_wrong) return;
        call(MPI_File_close(&one));
    }
}
static void opened_floor(void) {
    char name[600];
    for (int i = 0; i < OPENED; i++) {
        snprintf(name, sizeof name, "%s.%d", floor_path, i);
        int one = open(name, O_CREAT | O_RDWR, 0600);
        if (one < 0) is_wrong = true;
        close(one);
    }
}
static void delete_each(void) {
    char name[600];
    for (int i = 0; rank == 0 && i < 2 * OPENED; i++) {
        snprintf(name, sizeof name, "%s.%d", i < OPENED ? path : floor_path, i % OPENED);
        unlink(name);
    }
}
static void check_opened(void) {
    char name[600];
    for (int i = 0; i < OPENED; i++) {
        snprintf(name, sizeof name, "%s.%d", path, i);
        is_wrong |= access(name, F_OK) != 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
}
static void opened(void) {
    measure("open and close of 100 files", delete_each, opened_each, opened_floor, check_opened);
    MPI_Barrier(MPI_COMM_WORLD);
    delete_each();
}

static void run(const char *row) {
    long bytes;
    char name[64];
    if (sscanf(row, "blocks-%ld", &bytes) == 1) {
        at.block = bytes / WORD;
        bool is_short = bytes < 1024;
        snprintf(name, sizeof name, "blocks of %ld %s", is_short ? bytes : bytes / 1024, is_short ? "B" : "KB");
        return transfers(name, blocks);
    }
    if (strcmp(row, "contiguous") == 0) return transfers("contiguous", contiguous);
    if (strcmp(row, "subarray") == 0) return transfers("3-D subarray", subarray);
    if (strcmp(row, "nested") == 0) return transfers("nested vector", nested);
    if (strcmp(row, "gapped-memory") == 0) return transfers("gapped memory", holes_in_memory);
    if (strcmp(row, "gapped-file") == 0) return transfers("gapped file", holes_in_file);
    if (strcmp(row, "small") == 0) return small();
    if (strcmp(row, "shared") == 0 || strcmp(row, "ordered") == 0) return turns(row);
    if (strcmp(row, "opened") == 0) return opened();
    fprintf(stderr, "no row %s\n", row);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3) MPI_Abort(MPI_COMM_WORLD, 2);
    is_cpu = argc > 3 && strcmp(argv[3], "cpu") == 0;
    snprintf(path, sizeof path, "%s/file", argv[1]);
    snprintf(floor_path, sizeof floor_path, "%s/floor", argv[1]);
    int code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    floor_file = open(floor_path, O_CREAT | O_RDWR, 0600);
    if (code != MPI_SUCCESS || floor_file < 0) MPI_Abort(MPI_COMM_WORLD, 1);
    run(argv[2]);
    MPI_File_close(&file);
    close(floor_file);
    MPI_Finalize();
    return 0;
}
