// A program protects memory that is written to a file, or read from it, and opens it in a handler of its own: that runs
// in the program's thread, with its thread-local data, whoever moves the bytes.
//# ranks: 1 2
//# stdout: passed
#include "protected.h"

enum { BLOCKS = 4096, BLOCK = 64, LENGTH = BLOCKS * BLOCK * 2 };

int main(int argc, char **argv) {
    start(&argc, &argv);
    CHECK_EQ(chdir("/dev/shm"), 0);
    MPI_File file;
    MPI_Request request;
    MPI_Status status;
    MPI_Datatype gaps;
    char name[64];
    if (rank == 0) snprintf(name, sizeof name, "files-protected-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    char *memory = pages_of(LENGTH);
    MPI_Type_vector(BLOCKS, BLOCK, BLOCK * 2, MPI_CHAR, &gaps);
    MPI_Type_commit(&gaps);
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                           MPI_INFO_NULL, &file), MPI_SUCCESS);
    MPI_Offset own = (MPI_Offset)rank * BLOCKS * BLOCK;
    for (int all = 0; all < 2; all++) {
        for (int index = 0; index < LENGTH; index++) memory[index] = (char)(index / BLOCK + rank + all);
        protect(memory, LENGTH, PROT_NONE);
        if (all)
            MPI_File_iwrite_at_all(file, own, memory, 1, gaps, &request);
        else
            MPI_File_iwrite_at(file, own, memory, 1, gaps, &request);
        CHECK_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
        CHECK_EQ(opened, LENGTH / PAGE);
        memset(memory, 0, LENGTH);
        protect(memory, LENGTH, PROT_READ);
        if (all)
            MPI_File_iread_at_all(file, own, memory, 1, gaps, &request);
        else
            MPI_File_iread_at(file, own, memory, 1, gaps, &request);
        CHECK_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
        CHECK_EQ(opened, LENGTH / PAGE);
        for (int index = 0; index < LENGTH; index++)
            CHECK_EQ(memory[index], index / BLOCK % 2 ? 0 : (char)(index / BLOCK + rank + all));
    }
    // Others wait for the operation before they send what the first one waits for, or looks for.
    for (int tests = 0; tests < 2; tests++) {
        protect(memory, LENGTH, PROT_NONE);
        MPI_File_iwrite_at_all(file, own, memory, 1, gaps, &request);
        if (rank > 0) CHECK_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
        if (rank > 0) MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);
        for (int from = 1, found = 0; rank == 0 && from < size; from++, found = 0) {
            while (tests && !found) MPI_Iprobe(from, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
            MPI_Recv(NULL, 0, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (rank == 0) CHECK_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
        CHECK_EQ(opened, LENGTH / PAGE);
    }
    MPI_Type_free(&gaps);
    MPI_File_close(&file);
    return finish();
}
