// 64 MB messages, contiguous and strided, arrive byte for byte.
//# ranks: 2
//# progress: all
//# timeout: 60
#include "check.h"
enum { BYTES = 64 << 20 };

static unsigned char pattern(size_t i) { return (unsigned char)((i * 2654435761u) >> 13); }

int main(int argc, char **argv) {
    start(&argc, &argv);
    unsigned char *data = malloc(2 * (size_t)BYTES);
    MPI_Datatype strided;
    MPI_Type_vector(BYTES / 1024, 1024, 2048, MPI_UNSIGNED_CHAR, &strided);
    MPI_Type_commit(&strided);
    if (rank == 0) {
        for (size_t i = 0; i < 2 * (size_t)BYTES; i++) data[i] = pattern(i);
        MPI_Send(data, BYTES, MPI_UNSIGNED_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Send(data, 1, strided, 1, 2, MPI_COMM_WORLD);
    } else if (rank == 1) {
        memset(data, 0, 2 * (size_t)BYTES);
        MPI_Recv(data, BYTES, MPI_UNSIGNED_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (size_t i = 0; i < BYTES; i++) CHECK(data[i] == pattern(i));
        CHECK_EQ(data[BYTES], 0);
        MPI_Recv(data, BYTES, MPI_UNSIGNED_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (size_t i = 0; i < BYTES; i++) CHECK(data[i] == pattern(i / 1024 * 2048 + i % 1024));
    }
    MPI_Type_free(&strided);
    free(data);
    return finish();
}
