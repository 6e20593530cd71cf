// A program that makes communicators and frees none soon gets an error, at all members, and can go on.
//# ranks: 2
//# timeout: 150
#include "check.h"
enum { ROOM = 1 << 17, FEW = 5 };
static MPI_Comm made[ROOM], few[FEW + 1];

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int count = 0, code = MPI_SUCCESS, value = 0;
    MPI_Request request;
    while (count < ROOM && (code = MPI_Comm_dup(MPI_COMM_SELF, &made[count])) == MPI_SUCCESS) count++;
    CHECK_EQ(class_of(code), MPI_ERR_OTHER);
    CHECK(count > 10000 && made[count] == MPI_COMM_NULL);
    // As many of all ranks as there is room for; the next one is refused everywhere, and nothing is left of it.
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < FEW; i++) MPI_Comm_free(&made[--count]);
        for (int i = 0; i < FEW; i++) CHECK_EQ(MPI_Comm_dup(MPI_COMM_WORLD, &few[i]), MPI_SUCCESS);
        CHECK_EQ(class_of(MPI_Comm_dup(MPI_COMM_WORLD, &few[FEW])), MPI_ERR_OTHER);
        CHECK_EQ(class_of(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &few[FEW])), MPI_ERR_OTHER);
        CHECK_EQ(class_of(MPI_Comm_idup(MPI_COMM_WORLD, &few[FEW], &request)), MPI_ERR_OTHER);
        for (int i = 0; i < FEW; i++) {
            MPI_Allreduce(&i, &value, 1, MPI_INT, MPI_SUM, few[i]);
            CHECK_EQ(value, 2 * i);
            MPI_Comm_free(&few[i]);
        }
        for (int i = 0; i < FEW; i++) CHECK_EQ(MPI_Comm_dup(MPI_COMM_SELF, &made[count++]), MPI_SUCCESS);
    }
    while (count-- > 0) MPI_Comm_free(&made[count]);
    return finish();
}
