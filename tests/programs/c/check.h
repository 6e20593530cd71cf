/* What every test program shares: checks that name the line, and the rank and size. */
#ifndef CHECK_H
#define CHECK_H
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

/* Ends the job with exit code 1 and a message when the condition does not hold. */
#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "rank %d: %s:%d: %s\n", rank, __FILE__, __LINE__, #condition); \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                 \
        }                                                                                 \
    } while (0)

/* As CHECK for two integers, and prints them. */
#define CHECK_EQ(left, right)                                                             \
    do {                                                                                  \
        long long left_ = (long long)(left), right_ = (long long)(right);                 \
        if (left_ != right_) {                                                            \
            fprintf(stderr, "rank %d: %s:%d: %s is %lld, not %lld\n", rank, __FILE__,     \
                    __LINE__, #left, left_, right_);                                      \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                 \
        }                                                                                 \
    } while (0)

/* Error class of a code. */
__attribute__((unused)) static int class_of(int code) {
    int error_class = -1;
    MPI_Error_class(code, &error_class);
    return error_class;
}

__attribute__((unused)) static void start(int *argc, char ***argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

/* Every rank arrives here only when its checks held. */
__attribute__((unused)) static int finish(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) puts("passed");
    MPI_Finalize();
    return 0;
}
#endif
