// Group algebra, rank translation, and communicators made from groups.
//# ranks: 1 4 8
//# abi: mpich, mpi5, openmpi
#include "check.h"

int main(int argc, char **argv) {
    MPI_Group world, evens, odds, both, none;
    int members, result;
    start(&argc, &argv);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    int range[1][3] = {{0, size - 1, 2}};
    MPI_Group_range_incl(world, 1, range, &evens);
    MPI_Group_difference(world, evens, &odds);
    MPI_Group_size(odds, &members);
    CHECK_EQ(members, size / 2);
    MPI_Group_intersection(evens, odds, &none);
    CHECK(none == MPI_GROUP_EMPTY);
    MPI_Group_union(evens, odds, &both);
    MPI_Group_compare(both, world, &result);
    CHECK_EQ(result, size > 2 ? MPI_SIMILAR : MPI_IDENT);

    int last = (size + 1) / 2 - 1, there;
    MPI_Group_translate_ranks(evens, 1, &last, world, &there);
    CHECK_EQ(there, 2 * last);
    MPI_Group_rank(evens, &there);
    CHECK_EQ(there, rank % 2 ? MPI_UNDEFINED : rank / 2);

    MPI_Comm comm;
    MPI_Comm_create(MPI_COMM_WORLD, evens, &comm);
    CHECK((comm == MPI_COMM_NULL) == (rank % 2 != 0));
    if (comm != MPI_COMM_NULL) {
        int sum, expected = 0;
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        for (int r = 0; r < size; r += 2) expected += r;
        CHECK_EQ(sum, expected);
        MPI_Comm_free(&comm);
        // Only the members call this one.
        MPI_Comm_create_group(MPI_COMM_WORLD, evens, 3, &comm);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        CHECK_EQ(sum, expected);
        MPI_Comm_free(&comm);
    }
    // Groups that are disjoint make communicators of their own in one call.
    MPI_Comm_create(MPI_COMM_WORLD, rank % 2 ? odds : evens, &comm);
    MPI_Comm_size(comm, &members);
    CHECK_EQ(members, (size + 1 - rank % 2) / 2);
    MPI_Comm_free(&comm);
    MPI_Group_free(&world);
    MPI_Group_free(&evens);
    if (odds != MPI_GROUP_EMPTY) MPI_Group_free(&odds);
    MPI_Group_free(&both);
    return finish();
}
