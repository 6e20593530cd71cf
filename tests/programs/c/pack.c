// Pack and unpack, native and external32, and the counts of partly filled types.
//# ranks: 2
#include "check.h"

static void round_trip(void) {
    double values[6] = {1, 2, 3, 4, 5, 6}, back[6] = {0};
    char text[5] = "five", text_back[5] = "";
    char space[256];
    int position = 0, bytes;
    MPI_Datatype every_other;
    MPI_Type_vector(3, 1, 2, MPI_DOUBLE, &every_other);
    MPI_Type_commit(&every_other);
    MPI_Pack_size(1, every_other, MPI_COMM_WORLD, &bytes);
    CHECK(bytes >= 24);
    if (rank == 0) {
        MPI_Pack(text, 5, MPI_CHAR, space, sizeof space, &position, MPI_COMM_WORLD);
        MPI_Pack(values, 1, every_other, space, sizeof space, &position, MPI_COMM_WORLD);
        MPI_Send(space, position, MPI_PACKED, 1, 1, MPI_COMM_WORLD);
    } else {
        MPI_Status status;
        int count;
        MPI_Recv(space, sizeof space, MPI_PACKED, 0, 1, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_PACKED, &count);
        MPI_Unpack(space, count, &position, text_back, 5, MPI_CHAR, MPI_COMM_WORLD);
        MPI_Unpack(space, count, &position, back, 1, every_other, MPI_COMM_WORLD);
        CHECK(strcmp(text_back, "five") == 0);
        CHECK(back[0] == 1 && back[1] == 0 && back[2] == 3 && back[4] == 5);
        CHECK_EQ(position, count);
    }
    MPI_Type_free(&every_other);
}

static void partial_counts(void) {
    int data[10] = {0}, count;
    MPI_Count elements;
    MPI_Datatype pair;
    MPI_Status status;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    if (rank == 0) MPI_Send(data, 5, MPI_INT, 1, 2, MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Recv(data, 5, pair, 0, 2, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, pair, &count);
        CHECK_EQ(count, MPI_UNDEFINED);
        MPI_Get_elements_x(&status, pair, &elements);
        CHECK_EQ(elements, 5);
    }
    MPI_Type_free(&pair);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    round_trip();
    partial_counts();
    return finish();
}
