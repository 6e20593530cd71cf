// In atomic mode an operation is under way with memory that only the program's handler opens, and the program begins
// another one before it waits: whoever waits for its turn does what the first one has left to the program's thread.
//# ranks: 1 2
//# stdout: passed
#include "protected.h"

enum { BLOCKS = 4096, BLOCK = 64, LENGTH = BLOCKS * BLOCK * 2, BYTES = BLOCKS * BLOCK };

static char found[BYTES];
static MPI_File file;
static MPI_Datatype gaps;

/* Another call, while the operation is under way. */
static void meanwhile(int kind, MPI_Offset behind) {
    char own = (char)(kind + rank);
    MPI_Request request;
    MPI_Status status;
    int count = -1;
    switch (kind) {
    case 0: CHECK_EQ(MPI_File_write_at(file, behind, &own, 1, MPI_CHAR, &status), MPI_SUCCESS); break;
    case 1:
        CHECK_EQ(MPI_File_iwrite_at(file, behind, &own, 1, MPI_CHAR, &request), MPI_SUCCESS);
        CHECK_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
        break;
    case 2: CHECK_EQ(MPI_File_write_at_all(file, behind, &own, 1, MPI_CHAR, &status), MPI_SUCCESS); break;
    }
    MPI_Get_count(&status, MPI_CHAR, &count);
    CHECK_EQ(count, 1);
    char read = 0;
    CHECK_EQ(MPI_File_read_at(file, behind, &read, 1, MPI_CHAR, &status), MPI_SUCCESS);
    CHECK_EQ(read, own);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    char name[64];
    if (rank == 0) snprintf(name, sizeof name, "/dev/shm/files-protected-atomic-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    char *memory = pages_of(LENGTH);
    MPI_Type_vector(BLOCKS, BLOCK, BLOCK * 2, MPI_CHAR, &gaps);
    MPI_Type_commit(&gaps);
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), MPI_SUCCESS);
    CHECK_EQ(MPI_File_set_atomicity(file, 1), MPI_SUCCESS);
    MPI_Offset own = (MPI_Offset)rank * BYTES, behind = (MPI_Offset)size * BYTES + rank;
    for (int round = 0; round < 12; round++) {
        int kind = round / 2 % 3, all = round % 2;
        MPI_Request request;
        MPI_Status status;
        memset(memory, 1 + round + rank, LENGTH);
        protect(memory, LENGTH, PROT_NONE);
        if (all)
            MPI_File_iwrite_at_all(file, own, memory, 1, gaps, &request);
        else
            MPI_File_iwrite_at(file, own, memory, 1, gaps, &request);
        // It has probably begun then. It need not.
        if (round < 6) usleep(20000);
        meanwhile(kind, behind);
        CHECK_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
        CHECK_EQ(MPI_File_read_at(file, own, found, BYTES, MPI_CHAR, &status), MPI_SUCCESS);
        for (int index = 0; index < BYTES; index++)
            CHECK_EQ(found[index], 1 + round + rank);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Type_free(&gaps);
    MPI_File_close(&file);
    return finish();
}
