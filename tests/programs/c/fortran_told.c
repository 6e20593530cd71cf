// A program of the MPI-5 ABI tells what its Fortran is like: sizes that are not the usual ones, types that are not
// there, and LOGICALs whose .FALSE. is not 0 (MPI-5.0 section 20.4.1).
//# ranks: 1 2 4
//# abi: mpi5
#include "check.h"
#include <stdint.h>

static void expect_class(int code, int expected) {
    int class;
    MPI_Error_class(code, &class);
    CHECK_EQ(class, expected);
}

static int size_of(MPI_Datatype datatype) {
    int bytes;
    MPI_Type_size(datatype, &bytes);
    return bytes;
}

static void expect_info(MPI_Info info, const char *key, const char *expected) {
    char value[32];
    int length = sizeof value, flag;
    MPI_Info_get_string(info, key, &length, value, &flag);
    CHECK(flag && strcmp(value, expected) == 0);
}

// Sizes before and after.
static void sizes(void) {
    MPI_Info info, wrong;
    MPI_Abi_get_fortran_info(&info);
    CHECK(info == MPI_INFO_NULL);
    CHECK_EQ(size_of(MPI_INTEGER), 4);
    CHECK_EQ(size_of(MPI_REAL16), 16);
    // All look before anyone tells: the ranks of a node share it.
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Info_create(&wrong);
    MPI_Info_set(wrong, "mpi_integer_size", "3");
    expect_class(MPI_Abi_set_fortran_info(wrong), MPI_ERR_INFO_VALUE);
    MPI_Info_set(wrong, "mpi_integer_size", "8");
    MPI_Info_set(wrong, "mpi_real16_supported", "perhaps");
    expect_class(MPI_Abi_set_fortran_info(wrong), MPI_ERR_INFO_VALUE);
    MPI_Info_free(&wrong);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_integer_size", "8");
    MPI_Info_set(info, "mpi_logical_size", "8");
    MPI_Info_set(info, "mpi_real_size", "8");
    MPI_Info_set(info, "mpi_double_precision_size", "16");
    MPI_Info_set(info, "mpi_real16_supported", "false");
    MPI_Info_set(info, "mpi_logical1_supported", "true");
    CHECK_EQ(MPI_Abi_set_fortran_info(info), MPI_SUCCESS);
    expect_class(MPI_Abi_set_fortran_info(info), MPI_ERR_ABI);
    MPI_Info_free(&info);
    MPI_Abi_get_fortran_info(&info);
    CHECK(info != MPI_INFO_NULL);
    expect_info(info, "mpi_integer_size", "8");
    expect_info(info, "mpi_double_precision_size", "16");
    expect_info(info, "mpi_real16_supported", "false");
    expect_info(info, "mpi_complex8_supported", "true");
    MPI_Info_free(&info);
    CHECK_EQ(size_of(MPI_INTEGER), 8);
    CHECK_EQ(size_of(MPI_2INTEGER), 16);
    CHECK_EQ(size_of(MPI_LOGICAL), 8);
    CHECK_EQ(size_of(MPI_REAL), 8);
    CHECK_EQ(size_of(MPI_COMPLEX), 16);
    CHECK_EQ(size_of(MPI_2REAL), 16);
    CHECK_EQ(size_of(MPI_DOUBLE_PRECISION), 16);
    CHECK_EQ(size_of(MPI_DOUBLE_COMPLEX), 32);
    CHECK_EQ(size_of(MPI_REAL16), MPI_UNDEFINED);
    // No pairs of REAL*16 here.
    CHECK_EQ(size_of(MPI_2DOUBLE_PRECISION), MPI_UNDEFINED);
    CHECK_EQ(size_of(MPI_INTEGER4), 4);
    CHECK_EQ(size_of(MPI_INT), 4);
}

// What the types do.
static void types(int ranks) {
    int64_t own[2] = {rank + (INT64_C(1) << 40), rank}, all[2], next = -1;
    double half = rank + 0.5, sum;
    MPI_Datatype pair;
    char name[MPI_MAX_OBJECT_NAME];
    int length, before = (rank + ranks - 1) % ranks, count;
    MPI_Status status;
    MPI_Allreduce(own, all, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all[0] == (int64_t)ranks * (ranks - 1) / 2 + ranks * (INT64_C(1) << 40));
    MPI_Allreduce(own, all, 1, MPI_2INTEGER, MPI_MAXLOC, MPI_COMM_WORLD);
    CHECK(all[0] == ranks - 1 + (INT64_C(1) << 40) && all[1] == ranks - 1);
    MPI_Allreduce(&half, &sum, 1, MPI_REAL, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == ranks * (ranks - 1) / 2 + 0.5 * ranks);
    MPI_Sendrecv(own, 1, MPI_INTEGER, (rank + 1) % ranks, 0, &next, 1, MPI_INTEGER, before, 0, MPI_COMM_WORLD,
                 &status);
    MPI_Get_count(&status, MPI_INTEGER, &count);
    CHECK(count == 1 && next == before + (INT64_C(1) << 40));
    MPI_Type_get_name(MPI_INTEGER, name, &length);
    CHECK(strcmp(name, "MPI_INTEGER") == 0);
    MPI_Type_get_value_index(MPI_INTEGER, MPI_INTEGER, &pair);
    CHECK(pair == MPI_2INTEGER);
    MPI_Type_contiguous(3, MPI_INTEGER, &pair);
    CHECK_EQ(size_of(pair), 24);
    MPI_Type_free(&pair);
    expect_class(MPI_Allreduce(MPI_IN_PLACE, all, 1, MPI_REAL16, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_TYPE);
}

// What short calls on memory of the node look up is what was told, too.
static void short_messages(int ranks) {
    int64_t own = rank + (INT64_C(1) << 40), got = -1, *part;
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    float plain = rank;
    char missing[16] = "";
    MPI_Request request;
    MPI_Datatype datatype;
    MPI_Win win;
    MPI_Irecv(&got, 1, MPI_INTEGER, before, 1, MPI_COMM_WORLD, &request);
    MPI_Send(&own, 1, MPI_INTEGER, next, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(got == before + (INT64_C(1) << 40));
    MPI_Isend(&own, 1, MPI_INTEGER, next, 2, MPI_COMM_WORLD, &request);
    got = -1;
    MPI_Recv(&got, 1, MPI_INTEGER, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(got == before + (INT64_C(1) << 40));
    // One of which nothing was told.
    MPI_Isend(&plain, 1, MPI_REAL4, next, 3, MPI_COMM_WORLD, &request);
    MPI_Recv(&plain, 1, MPI_REAL4, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(plain == before);
    expect_class(MPI_Send(missing, 1, MPI_REAL16, next, 4, MPI_COMM_WORLD), MPI_ERR_TYPE);
    expect_class(MPI_Type_match_size(MPI_TYPECLASS_REAL, 16, &datatype), MPI_ERR_ARG);
    expect_class(MPI_Type_create_f90_real(33, 4931, &datatype), MPI_ERR_ARG);
    MPI_Type_create_f90_real(6, 37, &datatype);
    CHECK_EQ(size_of(datatype), 4);
    MPI_Type_dup(MPI_INTEGER, &datatype);
    CHECK_EQ(size_of(datatype), 8);
    MPI_Type_free(&datatype);

    MPI_Win_allocate(2 * sizeof *part, sizeof *part, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    part[0] = -1;
    part[1] = INT64_C(1) << 41;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    MPI_Put(&own, 1, MPI_INTEGER, next, 0, 1, MPI_INTEGER, win);
    MPI_Win_flush(next, win);
    got = -1;
    MPI_Get(&got, 1, MPI_INTEGER, next, 0, 1, MPI_INTEGER, win);
    MPI_Win_flush(next, win);
    CHECK(got == own);
    got = -1;
    MPI_Fetch_and_op(&own, &got, MPI_INTEGER, next, 1, MPI_SUM, win);
    MPI_Win_flush(next, win);
    CHECK(got == INT64_C(1) << 41);
    MPI_Accumulate(&own, 1, MPI_INTEGER, next, 1, 1, MPI_INTEGER, MPI_SUM, win);
    expect_class(MPI_Put(missing, 1, MPI_REAL16, next, 0, 1, MPI_REAL16, win), MPI_ERR_TYPE);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    CHECK(part[0] == before + (INT64_C(1) << 40));
    CHECK(part[1] == 2 * before + (INT64_C(1) << 42));
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
}

// .TRUE. is -1, .FALSE. is 1.
static void booleans(int ranks) {
    int64_t yes = -1, no = 1, got[2] = {0, 0}, value;
    int8_t small[2];
    int32_t middle;
    int is_set = 7;
    MPI_Abi_get_fortran_booleans(8, &got[0], &got[1], &is_set);
    CHECK_EQ(is_set, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    expect_class(MPI_Abi_set_fortran_booleans(3, &yes, &no), MPI_ERR_ARG);
    expect_class(MPI_Abi_set_fortran_booleans(8, &yes, &yes), MPI_ERR_ARG);
    CHECK_EQ(MPI_Abi_set_fortran_booleans(8, &yes, &no), MPI_SUCCESS);
    expect_class(MPI_Abi_set_fortran_booleans(8, &yes, &no), MPI_ERR_ABI);
    MPI_Abi_get_fortran_booleans(8, &got[0], &got[1], &is_set);
    CHECK(is_set == 1 && got[0] == yes && got[1] == no);
    MPI_Abi_get_fortran_booleans(1, &small[0], &small[1], &is_set);
    CHECK(is_set == 1 && small[0] == -1 && small[1] == 1);
    MPI_Barrier(MPI_COMM_WORLD);
    value = rank == 0 ? yes : no;
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD);
    CHECK(value == yes);
    value = rank == ranks - 1 && ranks > 1 ? no : yes;
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD);
    CHECK(value == (ranks > 1 ? no : yes));
    value = yes;
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_LOGICAL, MPI_LXOR, MPI_COMM_WORLD);
    CHECK(value == (ranks % 2 ? yes : no));
    // 0 is not .FALSE. here.
    middle = 0;
    MPI_Allreduce(MPI_IN_PLACE, &middle, 1, MPI_LOGICAL4, MPI_LAND, MPI_COMM_WORLD);
    CHECK(middle == (ranks > 1 ? -1 : 0));
    int flag = 1;
    MPI_Allreduce(MPI_IN_PLACE, &flag, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    CHECK_EQ(flag, 1);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    sizes();
    MPI_Barrier(MPI_COMM_WORLD);
    types(size);
    short_messages(size);
    booleans(size);
    return finish();
}
