// Members that share a file in small pieces, whoever lives where: random views against the bytes that they mean,
// collectively written and read; ends of the file; and gaps that nobody touches.
//# ranks: 1 4
//# abi: mpich
//# stdout: passed
//# timeout: 60
#include "check.h"
#include <stdint.h>
#include <unistd.h>

enum { MOST = 700000, BLOCKS = 4000, TILES = 2, EXTRA = 500 };

static char name[64];
static MPI_File file;
static uint64_t state;
static unsigned char image[MOST], found[MOST], data[2 * MOST];
static int owner[BLOCKS], length[BLOCKS], place[BLOCKS];

static unsigned draw(unsigned below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static unsigned char byte_of(int round, int at) {
    return (unsigned char)(((uint64_t)at * 2654435761u + (uint64_t)round * 40503u) >> 7);
}

/* Deals blocks of the file to ranks and to nobody; the same at all ranks. Returns bytes of a tile. */
static int deal(int round) {
    static const int units[] = {1, 4, 64, 700, 4096, 20000};
    int unit = units[draw(6)], is_even = draw(2), is_in_turn = draw(2), end = 0, blocks = 0;
    int most = MOST / TILES - EXTRA;
    int wanted = unit < 64 ? 2 + (int)draw(BLOCKS - 2) : 2 + (int)draw(300);
    while (blocks < wanted) {
        int bytes = is_even ? unit : 1 + (int)draw(2 * unit);
        if (end + bytes > most)
            break;
        owner[blocks] = is_in_turn ? (blocks + round) % size : (int)draw(size + 1);
        length[blocks] = bytes;
        place[blocks++] = end;
        end += bytes;
    }
    for (int block = blocks; block < BLOCKS; block++)
        owner[block] = -1;
    return end;
}

/* The caller's blocks as a filetype; the bytes of it. */
static int view_of(int start, int tile) {
    int lengths[BLOCKS], places[BLOCKS], count = 0, bytes = 0;
    for (int block = 0; block < BLOCKS; block++)
        if (owner[block] == rank) {
            lengths[count] = length[block];
            places[count++] = place[block];
            bytes += length[block];
        }
    MPI_Datatype blocks, filetype;
    MPI_Type_indexed(count, lengths, places, MPI_BYTE, &blocks);
    MPI_Type_create_resized(blocks, 0, tile, &filetype);
    MPI_Type_commit(&filetype);
    CHECK_EQ(MPI_File_set_view(file, start, MPI_BYTE, filetype, "native", MPI_INFO_NULL), MPI_SUCCESS);
    MPI_Type_free(&blocks);
    MPI_Type_free(&filetype);
    return bytes;
}

/* Calls `visit` for each byte of the caller's data, in order. */
static int each(int start, int tile, int end, int (*visit)(int index, int at, int round), int round) {
    int index = 0;
    for (int copy = 0; copy < TILES; copy++)
        for (int block = 0; block < BLOCKS; block++)
            for (int byte = 0; owner[block] == rank && byte < length[block]; byte++) {
                int at = start + copy * tile + place[block] + byte;
                if (at >= end)
                    return index;
                if (visit)
                    visit(index, at, round);
                index++;
            }
    return index;
}

static int is_gapped;

static int index_of(int index) { return is_gapped ? index / 10 * 20 + index % 10 : index; }

static int fill(int index, int at, int round) { return data[index_of(index)] = byte_of(round, at); }

static int compare(int index, int at, int round) {
    (void)round;
    CHECK_EQ(data[index_of(index)], image[at]);
    return 0;
}

/* The caller's memory: bytes one after the other, or ten of each twenty. */
static MPI_Datatype memory_of(int bytes) {
    MPI_Datatype type;
    if (is_gapped)
        MPI_Type_vector((bytes + 9) / 10, 10, 20, MPI_BYTE, &type);
    else
        MPI_Type_contiguous(bytes, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return type;
}

static void access_all(int is_write, int bytes, int wanted) {
    MPI_Status status;
    int count;
    is_gapped = is_gapped && bytes % 10 == 0;
    MPI_Datatype type = memory_of(bytes);
    if (is_write)
        CHECK_EQ(MPI_File_write_at_all(file, 0, data, bytes > 0, type, &status), MPI_SUCCESS);
    else
        CHECK_EQ(MPI_File_read_at_all(file, 0, data, bytes > 0, type, &status), MPI_SUCCESS);
    MPI_Get_elements(&status, MPI_BYTE, &count);
    CHECK_EQ(count, wanted);
    MPI_Type_free(&type);
}

static void check_file(int end) {
    MPI_Offset bytes;
    CHECK_EQ(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), MPI_SUCCESS);
    CHECK_EQ(MPI_File_get_size(file, &bytes), MPI_SUCCESS);
    CHECK_EQ(bytes, end);
    MPI_Status status;
    CHECK_EQ(MPI_File_read_at(file, 0, found, end, MPI_BYTE, &status), MPI_SUCCESS);
    for (int at = 0; at < end; at++)
        CHECK_EQ(found[at], image[at]);
}

static void play(int round) {
    // What is in the file before.
    int before = draw(2) ? (int)draw(MOST) : 0;
    memset(image, 0, sizeof image);
    memset(image, 0xee, before);
    CHECK_EQ(MPI_File_set_size(file, 0), MPI_SUCCESS);
    MPI_Status status;
    CHECK_EQ(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), MPI_SUCCESS);
    if (rank == 0)
        CHECK_EQ(MPI_File_write_at(file, 0, image, before, MPI_BYTE, &status), MPI_SUCCESS);
    int start = (int)draw(EXTRA), tile = deal(round), end = before;
    int bytes = view_of(start, tile) * TILES;
    int turn = (int)draw(2);
    for (int copy = 0; copy < TILES; copy++)
        for (int block = 0; block < BLOCKS; block++)
            for (int byte = 0; owner[block] >= 0 && owner[block] < size && byte < length[block]; byte++) {
                int at = start + copy * tile + place[block] + byte;
                image[at] = byte_of(round, at);
                end = at + 1 > end ? at + 1 : end;
            }
    is_gapped = (rank + turn) % 2 && bytes % 10 == 0;
    each(start, tile, MOST, fill, round);
    access_all(1, bytes, bytes);
    check_file(end);
    // All of it again, and then what is left behind a cut.
    for (int cut = end; cut >= 0; cut -= 1 + (int)draw(end + 1)) {
        CHECK_EQ(MPI_File_set_size(file, cut), MPI_SUCCESS);
        CHECK_EQ(view_of(start, tile) * TILES, bytes);
        memset(data, 0, sizeof data);
        access_all(0, bytes, each(start, tile, cut, NULL, 0));
        each(start, tile, cut, compare, round);
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (rank == 0) snprintf(name, sizeof name, "/dev/shm/files-nodes-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), MPI_SUCCESS);
    int rounds = argc > 1 ? atoi(argv[1]) : 10, seed = argc > 2 ? atoi(argv[2]) : 0;
    for (int round = 0; round < rounds; round++) {
        state = 77 + (uint64_t)(round + seed) * 1000003u;
        play(round);
    }
    CHECK_EQ(MPI_File_close(&file), MPI_SUCCESS);
    return finish();
}
