// A member that gives MPI_Comm_create a group beyond the communicator hears so, and the others hear that there is no
// communicator: none gets one without the others, or one with another one's number.
//# ranks: 4
//# abi: mpi5 mpich openmpi
//# progress: none
//# policies: listed
// Ranks that survive each other do no work for others.
//# nodes: no
// Between nodes nothing is different.
//# settings: COHORT_ON_FAILURE=continue
#include "check.h"

// What all of them give, but for one.
static void wrong_at(int odd, MPI_Comm comm, MPI_Group right, MPI_Group wrong) {
    MPI_Comm made = MPI_COMM_NULL;
    int code = MPI_Comm_create(comm, rank == odd ? wrong : right, &made), one = 1, sum = 0;
    CHECK_EQ(class_of(code), rank == odd ? MPI_ERR_GROUP : MPI_ERR_OTHER);
    CHECK_EQ(made, MPI_COMM_NULL);
    CHECK_EQ(MPI_Comm_create(comm, right, &made), MPI_SUCCESS);
    CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made), MPI_SUCCESS);
    CHECK_EQ(sum, size - 1);
    MPI_Comm_free(&made);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm comm;
    MPI_Group world, right;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    // Without the last rank.
    MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1 ? MPI_UNDEFINED : 0, 0, &comm);
    if (comm != MPI_COMM_NULL) {
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        MPI_Comm_group(comm, &right);
        for (int odd = 0; odd < size - 1; odd++) wrong_at(odd, comm, right, world);
        MPI_Group_free(&right);
        MPI_Comm_free(&comm);
    }
    MPI_Group_free(&world);
    return finish();
}
