/* Buffers that end in memory that may not be read or written: MPI's access kills the rank. */
#ifndef PROTECTED_H
#define PROTECTED_H
#include "check.h"
#include <sys/mman.h>

/* Pages of their own, with the rank in each byte. */
__attribute__((unused)) static char *pages_of(size_t length) {
    char *data = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(data != MAP_FAILED);
    memset(data, rank, length);
    return data;
}

/* Rank 0 sends so many bytes when rank 1 waits for them, with a buffer that it may write to the first `good` only. */
__attribute__((unused)) static void receive_too_much(char *data, int length, int good) {
    if (rank == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send(data, length, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    } else {
        CHECK(mprotect(data + good, length - good, PROT_READ) == 0);
        MPI_Request request;
        MPI_Irecv(data, length, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

#endif
