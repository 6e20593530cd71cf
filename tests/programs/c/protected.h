/* Buffers in memory that may not be read or written: MPI's access kills the rank, or runs the program's handler. */
#ifndef PROTECTED_H
#define PROTECTED_H
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

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

enum { PAGE = 4096 };

/* Pages that the handler has opened in this thread; below 0 in one that has not begun to count. */
__attribute__((unused)) static __thread int opened = -1;

/* The handler of SIGSEGV: opens a page. */
__attribute__((unused)) static void open_page(int signal_number, siginfo_t *information, void *context) {
    (void)signal_number, (void)context;
    char *page = (char *)((size_t)information->si_addr / PAGE * PAGE);
    if (opened < 0 || mprotect(page, PAGE, PROT_READ | PROT_WRITE) != 0) _exit(9);
    opened++;
}

/* Protects pages that the handler opens, and begins to count. */
__attribute__((unused)) static void protect(char *pages, size_t length, int access) {
    struct sigaction action = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    CHECK_EQ(mprotect(pages, length, access), 0);
    opened = 0;
}

#endif
