// The dimensions that MPI_Dims_create chooses are as equal as divisors allow, and a grid without places has none for
// anybody.
//# ranks: 1 2
#include "check.h"

static void splits(int nodes, int count, const int *expected) {
    int dims[8] = {0};
    CHECK_EQ(MPI_Dims_create(nodes, count, dims), MPI_SUCCESS);
    for (int i = 0; i < count; i++) CHECK_EQ(dims[i], expected[i]);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    splits(936, 3, (int[]){13, 9, 8});
    splits(24, 3, (int[]){4, 3, 2});
    splits(1080, 3, (int[]){12, 10, 9});
    splits(60, 2, (int[]){10, 6});
    splits(1073741824, 6, (int[]){32, 32, 32, 32, 32, 32});
    splits(2147483647, 2, (int[]){2147483647, 1});
    splits(735134400, 4, (int[]){170, 168, 165, 156});
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int place = 77, periods[2] = {0, 0};
    CHECK_EQ(MPI_Cart_map(MPI_COMM_WORLD, 1, (int[]){0}, periods, &place), MPI_SUCCESS);
    CHECK_EQ(place, MPI_UNDEFINED);
    place = 77;
    CHECK_EQ(MPI_Cart_map(MPI_COMM_WORLD, 2, (int[]){1, 0}, periods, &place), MPI_SUCCESS);
    CHECK_EQ(place, MPI_UNDEFINED);
    CHECK_EQ(class_of(MPI_Cart_map(MPI_COMM_WORLD, 2, (int[]){-1, 0}, periods, &place)), MPI_ERR_DIMS);
    CHECK_EQ(MPI_Cart_map(MPI_COMM_WORLD, 1, (int[]){1}, periods, &place), MPI_SUCCESS);
    CHECK(place == 0 || place == MPI_UNDEFINED);
    return finish();
}
