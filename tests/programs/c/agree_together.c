// Agreements and shrinking where no rank survives another: all take part, on one node and on several.
//# ranks: 2 4
//# abi: mpi5 mpich openmpi
#include "check.h"
#include "survival.h"
#include <limits.h>

// `whole` is what agreements are made in, by a blocking call and by one that goes on meanwhile.
static void agree(MPI_Comm whole) {
    MPI_Request request;
    int flag = ~(1 << rank), all = ~((1 << size) - 1), later = INT_MAX - (1 << rank), failed;
    CHECK_EQ(MPIX_Comm_agree(whole, &flag), MPI_SUCCESS);
    CHECK_EQ(flag, all);
    CHECK_EQ(MPIX_Comm_iagree(whole, &later, &request), MPI_SUCCESS);
    CHECK_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK_EQ(later, INT_MAX - (1 << size) + 1);
    CHECK_EQ(MPIX_Comm_ack_failed(whole, size, &failed), MPI_SUCCESS);
    CHECK_EQ(failed, 0);
}

static void same(MPI_Comm left, MPI_Comm whole, int members) {
    int result, one = 1, sum = 0;
    CHECK_EQ(MPI_Comm_compare(left, whole, &result), MPI_SUCCESS);
    CHECK_EQ(result, MPI_CONGRUENT);
    CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, left), MPI_SUCCESS);
    CHECK_EQ(sum, members);
    agree(left);
    MPI_Comm_free(&left);
}

static void shrink(MPI_Comm whole, int members) {
    MPI_Comm left;
    MPI_Request request;
    CHECK_EQ(MPIX_Comm_shrink(whole, &left), MPI_SUCCESS);
    same(left, whole, members);
    CHECK_EQ(MPIX_Comm_ishrink(whole, &left, &request), MPI_SUCCESS);
    CHECK_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    same(left, whole, members);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    agree(MPI_COMM_WORLD);
    shrink(MPI_COMM_WORLD, size);
    MPI_Comm own, inter;
    int second = rank % 2;
    MPI_Comm_split(MPI_COMM_WORLD, second, 0, &own);
    CHECK_EQ(MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, !second, 1, &inter), MPI_SUCCESS);
    agree(inter);
    shrink(inter, size / 2);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&own);
    if (rank == 0) puts("passed");
    MPI_Finalize();
}
