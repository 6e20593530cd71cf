// A program may have as many communicators at a time as memory is there for.
//# ranks: 2
//# timeout: 150
#include "check.h"
enum { MANY = 40000, ALL = 100 };
static MPI_Comm made[MANY];

int main(int argc, char **argv) {
    start(&argc, &argv);
    int value;
    for (int i = 0; i < MANY; i++) MPI_Comm_dup(i % ALL ? MPI_COMM_SELF : MPI_COMM_WORLD, &made[i]);
    for (int i = MANY - ALL; i >= 0; i -= ALL) {
        MPI_Allreduce(&i, &value, 1, MPI_INT, MPI_SUM, made[i]);
        CHECK_EQ(value, 2 * i);
    }
    for (int i = 0; i < MANY; i++) MPI_Comm_free(&made[i]);
    return finish();
}
