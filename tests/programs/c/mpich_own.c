// What MPICH has beside the standard: MPIX_EQUAL, MPIX_C_FLOAT16, the split by neighbourhood, bounds that MPI-3
// removed, and functions that are missing here, which say so by name.
//# ranks: 1 3
//# abi: mpich
// Not on several nodes: members of one node see a directory.
//# nodes: no

#include "check.h"

static int equal(int count, MPI_Datatype type, const void *data)
{
    int all[2] = {-7, -7}, one[2] = {-7, -7}, last = size - 1;
    MPI_Allreduce(data, all, count, type, MPIX_EQUAL, MPI_COMM_WORLD);
    MPI_Reduce(data, one, count, type, MPIX_EQUAL, last, MPI_COMM_WORLD);
    CHECK(one[0] == (rank == last ? all[0] : -7) && one[1] == -7 && all[1] == -7);
    return all[0];
}

static void equality(void)
{
    int data[3] = {1, 2, 3};
    CHECK(equal(3, MPI_INT, data) == 1);
    data[1] = rank;
    CHECK(equal(3, MPI_INT, data) == (size == 1));
    CHECK(equal(0, MPI_INT, data) == 1);
    MPI_Datatype ends;
    MPI_Type_vector(2, 1, 2, MPI_INT, &ends);
    MPI_Type_commit(&ends);
    CHECK(equal(1, ends, data) == 1);
    MPI_Type_free(&ends);
    double zero = rank ? 0.0 : -0.0;
    CHECK(equal(1, MPI_DOUBLE, &zero) == (size == 1));
    int commutes = -1, refused;
    MPI_Op_commutative(MPIX_EQUAL, &commutes);
    CHECK(commutes == 1);
    refused = MPI_Scan(data, data + 1, 1, MPI_INT, MPIX_EQUAL, MPI_COMM_WORLD);
    MPI_Error_class(refused, &refused);
    CHECK(refused == MPI_ERR_OP);
}

static void halves(void)
{
    // 1.5, and a bit more than 2: sums are rounded.
    unsigned short mine[2] = {0x3e00, 0x4001}, sum[2] = {0, 0}, most[2];
    MPI_Allreduce(mine, sum, 2, MPIX_C_FLOAT16, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum[0] == (size == 1 ? 0x3e00 : 0x4480));
    CHECK(sum[1] == (size == 1 ? 0x4001 : 0x4602));
    MPI_Allreduce(mine, most, 2, MPIX_C_FLOAT16, MPI_MAX, MPI_COMM_WORLD);
    CHECK(memcmp(most, mine, sizeof most) == 0);
}

static void neighbours(void)
{
    MPI_Comm near = MPI_COMM_NULL;
    MPI_Info hints;
    int members = 0;
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "nbhd_common_dirname", ".");
    CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, MPIX_COMM_TYPE_NEIGHBORHOOD, 0, hints, &near) == 0);
    CHECK(near != MPI_COMM_NULL);
    MPI_Comm_size(near, &members);
    CHECK(members == size);
    MPI_Comm_free(&near);
    MPI_Info_set(hints, "nbhd_common_dirname", "/no/such/directory");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPIX_COMM_TYPE_NEIGHBORHOOD, 0, hints, &near);
    CHECK(near == MPI_COMM_NULL);
    MPI_Info_free(&hints);
}

int main(int argc, char **argv)
{
    int length, bytes = -1, class;
    char name[MPI_MAX_OBJECT_NAME] = "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    equality();
    halves();
    neighbours();
    MPI_Type_get_name(MPI_LB, name, &length);
    MPI_Type_size(MPI_UB, &bytes);
    CHECK(strcmp(name, "MPI_LB") == 0 && bytes == 0);

    MPIX_Stream stream;
    MPI_Error_class(MPIX_Stream_create(MPI_INFO_NULL, &stream), &class);
    CHECK(class == MPI_ERR_UNSUPPORTED_OPERATION);
    MPI_Error_class(PMPIX_Stream_progress(MPIX_STREAM_NULL), &class);
    CHECK(class == MPI_ERR_UNSUPPORTED_OPERATION);
    MPI_Finalize();
    return 0;
}
