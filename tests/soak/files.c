/* Rounds of a file that all ranks write and read, through random views, from and to memory with gaps, by all forms of
 * access. Every rank knows what all others write, so each has an image of the file and knows what a read must give.
 *
 * Ranks write different bytes: a view is cut into slots, each of which belongs to one rank or to nobody. */
#include "soak.h"
#include <stdio.h>
#include <unistd.h>

#define IMAGE (1 << 20)
#define MOST 24
#define LONGEST 40000
#define RANKS 1024

enum { AT_ALL, ALL, AT, OWN, IAT, IAT_ALL, IALL, SPLIT_AT, SPLIT, ORDERED, FORMS };

/* Blocks in the order of the data, repeated every `extent` bytes: of a file, or of memory. */
typedef struct {
    int blocks;
    long at[MOST], length[MOST], bytes, extent, start;
} Layout;

/* What one rank does in one call. */
typedef struct {
    long offset, bytes, count; /* `count` times the layout of memory */
    Layout memory;
} Access;

typedef struct {
    MPI_File file;
    char name[64];
    unsigned char *image;
    long end;  /* of the file */
    int unit;  /* bytes of an etype */
    long position[RANKS];
} File;

static void add_block(Layout *layout, long at, long length) {
    layout->at[layout->blocks] = at, layout->length[layout->blocks++] = length;
    layout->bytes += length;
}

/* How many bytes from `data` on lie together, and where. */
static long together(const Layout *layout, long data, long *at) {
    long rest = data % layout->bytes;
    int block = 0;
    while (rest >= layout->length[block]) rest -= layout->length[block++];
    *at = layout->start + data / layout->bytes * layout->extent + layout->at[block] + rest;
    return layout->length[block] - rest;
}

/* The view of a rank in a step: of the slots that are its own, or of all. */
static Layout view_of(const Round *round, const File *file, int step, int rank, int shared) {
    Dice dice = own_dice(round, RANKS + step, 31);
    Layout layout = {.start = below(&dice, 5000)};
    int slots = 1 + below(&dice, MOST - 1);
    long slot = file->unit * (1L + below(&dice, one_in(&dice, 3) ? 3000 : one_in(&dice, 2) ? 200 : 6));
    for (int i = 0; i < slots; i++) {
        int owner = below(&dice, round->size + 1);
        if (owner == rank || (shared && owner < round->size)) add_block(&layout, i * slot, slot);
    }
    layout.extent = slots * slot + file->unit * (long)below(&dice, 20);
    return layout;
}

/* How many bytes of data a view has within the image. */
static long room_of(const Layout *view) {
    return view->blocks ? (IMAGE - view->start) / view->extent * view->bytes : 0;
}

static Access access_of(const Round *round, const File *file, const Layout *view, int number, int rank) {
    Dice dice = own_dice(round, rank, 100 + number);
    Access access = {.count = 1};
    long room = room_of(view), unit = file->unit;
    access.offset = room ? (long)below(&dice, (int)(room / 2 / unit + 1)) * unit : 0;
    long most = room - access.offset < LONGEST ? room - access.offset : LONGEST;
    long bytes = one_in(&dice, 6) || most <= 0 ? 0 : (long)below(&dice, (int)(most / unit + 1)) * unit;
    if (one_in(&dice, 3)) bytes = bytes / 16 / unit * unit;
    int blocks = 1 + below(&dice, 8), gaps = one_in(&dice, 4) ? 0 : 1 + below(&dice, 3000);
    long at = 0;
    if (one_in(&dice, 3)) blocks = 0;
    for (int i = 0; i < blocks; i++) {
        long length = unit * (1L + below(&dice, one_in(&dice, 4) ? 2000 : 30));
        at += gaps ? below(&dice, gaps) : 0;
        add_block(&access.memory, at, length);
        at += length;
    }
    for (int i = blocks - 1; i > 0 && gaps; i--) {
        int other = below(&dice, i + 1);
        long swap = access.memory.at[i], length = access.memory.length[i];
        access.memory.at[i] = access.memory.at[other], access.memory.length[i] = access.memory.length[other];
        access.memory.at[other] = swap, access.memory.length[other] = length;
    }
    access.memory.extent = at + (gaps ? below(&dice, gaps) : 0);
    if (blocks) access.count = bytes / access.memory.bytes;
    if (!blocks || access.count == 0) {
        access.memory = (Layout){0};
        add_block(&access.memory, 0, bytes ? bytes : unit);
        access.memory.extent = access.memory.bytes, access.count = bytes ? 1 : 0;
    }
    access.bytes = access.count * access.memory.bytes;
    return access;
}

static MPI_Datatype type_of(const File *file, const Layout *layout) {
    MPI_Datatype base = file->unit == 1 ? MPI_BYTE : MPI_INT, made, resized;
    int lengths[MOST], size = file->unit == 1 ? 1 : 4;
    MPI_Aint at[MOST];
    for (int i = 0; i < layout->blocks; i++) lengths[i] = (int)(layout->length[i] / size), at[i] = layout->at[i];
    MPI_Type_create_hindexed(layout->blocks, lengths, at, base, &made);
    MPI_Type_create_resized(made, 0, layout->extent, &resized);
    MPI_Type_commit(&resized);
    MPI_Type_free(&made);
    return resized;
}

static void set_view(const File *file, const Layout *view) {
    MPI_Datatype etype, filetype;
    MPI_Type_contiguous(file->unit == 1 ? 1 : file->unit / 4, file->unit == 1 ? MPI_BYTE : MPI_INT, &etype);
    MPI_Type_commit(&etype);
    if (view->blocks) filetype = type_of(file, view);
    else MPI_Type_dup(etype, &filetype);
    MPI_File_set_view(file->file, view->start, etype, filetype, "native", MPI_INFO_NULL);
    MPI_Type_free(&etype);
    MPI_Type_free(&filetype);
}

/* Calls the form, and gives the bytes that the status counts. */
static long call(const Round *round, const File *file, int writes, int form, const Access *access, void *data) {
    MPI_File fh = file->file;
    MPI_Datatype type = type_of(file, &access->memory);
    MPI_Offset at = access->offset / file->unit;
    MPI_Status status;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Count found = -1;
    int n = (int)access->count, code = MPI_ERR_OTHER;
    switch (form) {
#define FORM(name, kind, ...) \
    case name: code = writes ? MPI_File_write##kind(__VA_ARGS__) : MPI_File_read##kind(__VA_ARGS__); break
        FORM(AT_ALL, _at_all, fh, at, data, n, type, &status);
        FORM(ALL, _all, fh, data, n, type, &status);
        FORM(AT, _at, fh, at, data, n, type, &status);
        FORM(OWN, , fh, data, n, type, &status);
        FORM(ORDERED, _ordered, fh, data, n, type, &status);
        FORM(SPLIT_AT, _at_all_begin, fh, at, data, n, type);
        FORM(SPLIT, _all_begin, fh, data, n, type);
#undef FORM
#define FORM(name, kind, ...) \
    case name: code = writes ? MPI_File_iwrite##kind(__VA_ARGS__) : MPI_File_iread##kind(__VA_ARGS__); break
        FORM(IAT, _at, fh, at, data, n, type, &request);
        FORM(IAT_ALL, _at_all, fh, at, data, n, type, &request);
        FORM(IALL, _all, fh, data, n, type, &request);
#undef FORM
    }
    EXPECT(round, code == MPI_SUCCESS);
    Dice own = own_dice(round, round->me, 33);
    if (form == SPLIT_AT) {
        compute(&own);
        code = writes ? MPI_File_write_at_all_end(fh, data, &status) : MPI_File_read_at_all_end(fh, data, &status);
    }
    if (form == SPLIT) {
        compute(&own);
        code = writes ? MPI_File_write_all_end(fh, data, &status) : MPI_File_read_all_end(fh, data, &status);
    }
    if (form == IAT || form == IAT_ALL || form == IALL) compute(&own), code = MPI_Wait(&request, &status);
    EXPECT(round, code == MPI_SUCCESS);
    MPI_Get_elements_x(&status, type, &found);
    if (file->unit != 1) found *= 4;
    MPI_Type_free(&type);
    return (long)found;
}

/* Where a rank's access begins; moves its pointer by what is there. */
static long begin_of(File *file, int form, const Access *access, int rank, long there) {
    long at = access->offset;
    if (form == ALL || form == IALL || form == SPLIT || form == OWN)
        at = file->position[rank], file->position[rank] += there;
    return at;
}

static void write_step(const Round *round, File *file, int step, int form) {
    long shared = 0;
    memset(file->position, 0, sizeof file->position);
    Layout own = view_of(round, file, step, round->me, form == ORDERED);
    set_view(file, &own);
    for (int turn = 0; turn < 2; turn++) {
        unsigned char *data = NULL;
        Access mine = {0};
        for (int rank = 0; rank < round->size; rank++) {
            Layout view = view_of(round, file, step, rank, form == ORDERED);
            Access access = access_of(round, file, &view, 2 * step + turn, rank);
            long start = begin_of(file, form, &access, rank, access.bytes), room = room_of(&view);
            if (form == ORDERED) start = shared, shared += access.bytes;
            /* Only what comes last in a step may not fit, so no pointer is used after it. */
            if (start + access.bytes > room) access.bytes = access.count = 0;
            uint64_t key = key_of(round, rank, turn, 1000 + step);
            unsigned char *bytes = malloc((size_t)access.bytes + 8);
            fill_bytes(bytes, (size_t)access.bytes, key);
            for (long done = 0, at, length; done < access.bytes; done += length) {
                length = together(&view, start + done, &at);
                if (length > access.bytes - done) length = access.bytes - done;
                memcpy(file->image + at, bytes + done, (size_t)length);
                if (at + length > file->end) file->end = at + length;
            }
            if (rank == round->me) {
                mine = access;
                size_t size = (size_t)((access.count + 1) * access.memory.extent + access.memory.bytes);
                data = malloc(size + 8);
                memset(data, 0xee, size);
                for (long done = 0, at, length; done < access.bytes; done += length) {
                    length = together(&access.memory, done, &at);
                    memcpy(data + at, bytes + done, (size_t)length);
                }
            }
            free(bytes);
            if (form == ORDERED && access.count == 0) shared = start;
        }
        long found = call(round, file, 1, form, &mine, data);
        if (found != mine.bytes) wrong(round, "form %d wrote %ld bytes instead of %ld", form, found, mine.bytes);
        count_done(1, (uint64_t)mine.bytes);
        free(data);
    }
}

static void read_step(const Round *round, File *file, int step, int form) {
    Layout view = view_of(round, file, step, round->me, form == ORDERED);
    long shared = 0;
    set_view(file, &view);
    Access access = access_of(round, file, &view, 2 * step, round->me);
    long start = form == AT_ALL || form == AT || form == IAT || form == IAT_ALL || form == SPLIT_AT ? access.offset : 0;
    for (int rank = 0; rank < round->me && form == ORDERED; rank++)
        shared += access_of(round, file, &view, 2 * step, rank).bytes;
    if (form == ORDERED) start = shared;
    size_t size = (size_t)((access.count + 1) * access.memory.extent + access.memory.bytes);
    unsigned char *data = malloc(size + 8), *expected = malloc(size + 8);
    memset(data, 0xee, size);
    memset(expected, 0xee, size);
    long there = 0;
    for (long done = 0, at, from, length; done < access.bytes && there == done; done += length) {
        length = together(&view, start + done, &from);
        long other = together(&access.memory, done, &at);
        if (length > other) length = other;
        if (length > access.bytes - done) length = access.bytes - done;
        long good = file->end - from < length ? file->end - from : length;
        if (good <= 0) break;
        memcpy(expected + at, file->image + from, (size_t)good);
        there += good;
    }
    long found = call(round, file, 0, form, &access, data);
    if (found != there && there % 4 == 0) wrong(round, "form %d read %ld bytes instead of %ld", form, found, there);
    for (size_t at = 0; at < size; at++)
        if (data[at] != expected[at])
            wrong(round, "form %d: byte %zu of %zu in memory is %d instead of %d; %ld of %ld bytes are there", form, at,
                  size, data[at], expected[at], there, access.bytes);
    count_done(1, (uint64_t)there);
    free(data);
    free(expected);
}

static void settle(const Round *round, File *file) {
    MPI_Offset size = -1;
    MPI_File_sync(file->file);
    MPI_Barrier(round->comm);
    MPI_File_get_size(file->file, &size);
    if (size != file->end) wrong(round, "the file has %lld bytes instead of %ld", (long long)size, file->end);
    MPI_Barrier(round->comm);
    MPI_File_sync(file->file);
}

void files(Round *round) {
    static const int units[] = {1, 1, 4, 12};
    File file = {.unit = units[below(&round->dice, 4)]};
    int steps = 2 + below(&round->dice, 5);
    if (round->size > RANKS) return;
    snprintf(file.name, sizeof file.name, "/dev/shm/soak-%d-%016llx", (int)getpid(), (unsigned long long)round->key);
    MPI_Bcast(file.name, sizeof file.name, MPI_CHAR, 0, round->comm);
    file.image = calloc(1, IMAGE);
    EXPECT(round, MPI_File_open(round->comm, file.name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                                MPI_INFO_NULL, &file.file) == MPI_SUCCESS);
    for (int step = 0; step < steps && step < round->effort; step++) {
        if (one_in(&round->dice, 5)) MPI_File_set_atomicity(file.file, below(&round->dice, 2));
        if (one_in(&round->dice, 6)) {
            long end = below(&round->dice, IMAGE);
            MPI_File_set_size(file.file, end);
            if (end < file.end) memset(file.image + end, 0, (size_t)(file.end - end));
            file.end = end;
        }
        write_step(round, &file, 2 * step, below(&round->dice, FORMS));
        settle(round, &file);
        read_step(round, &file, 2 * step + below(&round->dice, 2), below(&round->dice, FORMS));
        MPI_Barrier(round->comm);
    }
    EXPECT(round, MPI_File_close(&file.file) == MPI_SUCCESS);
    free(file.image);
}
