// What flang makes of a program with our module mpi_f08: the standard's descriptors of arrays, as LLVM lays them out,
// and the module's variables in the program itself.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int MPIR_F08_MPI_BOTTOM, MPIR_F08_MPI_IN_PLACE, MPIR_F08_MPI_BUFFER_AUTOMATIC;

// CFI_cdesc_t.
struct descriptor {
    void *base;
    size_t element;
    int version;
    int8_t rank, type;
    uint8_t attribute, extra;
    struct {
        int64_t lower, extent, step;
    } axis[2];
};

void mpi_isend_f08ts_(struct descriptor *, const int *, const int *, const int *, const int *, const int *, int *,
                      int *);
void mpi_recv_f08ts_(struct descriptor *, const int *, const int *, const int *, const int *, const int *, int *,
                     int *);
void mpi_iallreduce_f08ts_(struct descriptor *, struct descriptor *, const int *, const int *, const int *, const int *,
                           int *, int *);
void mpi_sizeof_f08ts_(struct descriptor *, int *, int *);

static void expect(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "wrong: %s\n", what);
    exit(3);
}

// Every other row of the last columns of an array of 6 rows, backwards.
static struct descriptor section(int *array, int columns) {
    struct descriptor made = {array + 6 * columns - 1, 4, 20180515, 2, 9, 0, 0, {{1, 3, -8}, {1, columns, -24}}};
    return made;
}

static struct descriptor scalar(void *value, int type, size_t bytes) {
    struct descriptor made = {value, bytes, 20240719, 0, (int8_t)type, 0, 0, {{0, 0, 0}, {0, 0, 0}}};
    return made;
}

int main(void) {
    int rank, size, ierror = 7, request, bytes;
    int from[24], to[24], twelve = 12, tag = 4;
    int integer = MPI_Type_c2f(MPI_INTEGER), world = MPI_Comm_c2f(MPI_COMM_WORLD), sum = MPI_Op_c2f(MPI_SUM);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, before = (rank + size - 1) % size, status[5];
    for (int i = 0; i < 24; i++) from[i] = 100 * rank + i, to[i] = -1;
    struct descriptor sent = section(from, 4), received = section(to, 4);
    mpi_isend_f08ts_(&sent, &twelve, &integer, &next, &tag, &world, &request, &ierror);
    expect(ierror == MPI_SUCCESS, "isend");
    mpi_recv_f08ts_(&received, &twelve, &integer, &before, &tag, &world, status, NULL);
    MPI_Request c = MPI_Request_f2c(request);
    MPI_Wait(&c, MPI_STATUS_IGNORE);
    for (int i = 0; i < 24; i++) expect(to[i] == (i % 2 ? 100 * before + i : -1), "a section of two steps");
    struct descriptor in_place = scalar(&MPIR_F08_MPI_IN_PLACE, 9, 4);
    mpi_iallreduce_f08ts_(&in_place, &received, &twelve, &integer, &sum, &world, &request, &ierror);
    expect(ierror == MPI_SUCCESS, "iallreduce");
    c = MPI_Request_f2c(request);
    MPI_Wait(&c, MPI_STATUS_IGNORE);
    int ranks = 100 * size * (size - 1) / 2;
    for (int i = 0; i < 24; i++) expect(to[i] == (i % 2 ? ranks + size * i : -1), "a reduction in place");
    struct descriptor text = scalar(to, 40, 17), real = scalar(to, 28, 8);
    mpi_sizeof_f08ts_(&text, &bytes, NULL);
    expect(bytes == 1, "bytes of a character");
    mpi_sizeof_f08ts_(&real, &bytes, NULL);
    expect(bytes == 8, "bytes of a number");
    MPI_Finalize();
    printf("done %d\n", rank);
    return 0;
}
