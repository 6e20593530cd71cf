// MPI_LB and MPI_UB, which MPI-3 removed, set the bounds of structs in old programs.
//# ranks: 2
//# abi: mpich
//# differential: mpich
#include "check.h"

static MPI_Datatype made(int count, const int *lengths, const MPI_Aint *places, const MPI_Datatype *types) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    CHECK_EQ(MPI_Type_create_struct(count, lengths, places, types, &type), MPI_SUCCESS);
    CHECK_EQ(MPI_Type_commit(&type), MPI_SUCCESS);
    return type;
}

static void bounds(MPI_Datatype type, MPI_Aint lb, MPI_Aint extent) {
    MPI_Aint its_lb, its_extent;
    MPI_Type_get_extent(type, &its_lb, &its_extent);
    CHECK_EQ(its_lb, lb);
    CHECK_EQ(its_extent, extent);
}

/* What they say of themselves, as MPICH has it. */
static void said(MPI_Datatype type, const char *name) {
    char its_name[MPI_MAX_OBJECT_NAME];
    int length, bytes = -1;
    MPI_Type_get_name(type, its_name, &length);
    CHECK(strcmp(its_name, name) == 0);
    MPI_Type_size(type, &bytes);
    CHECK_EQ(bytes, 0);
    bounds(type, 0, 0);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    said(MPI_LB, "MPI_LB");
    said(MPI_UB, "MPI_UB");
    const int ones[3] = {1, 1, 1}, none[3] = {0, 1, 0};
    const MPI_Aint places[3] = {-8, 0, 20}, outer[2] = {0, 40};
    MPI_Datatype both = made(3, ones, places, (MPI_Datatype[]){MPI_LB, MPI_INT, MPI_UB});
    MPI_Datatype empty = made(3, none, places, (MPI_Datatype[]){MPI_LB, MPI_INT, MPI_UB});
    MPI_Datatype nested = made(2, ones, outer, (MPI_Datatype[]){both, MPI_DOUBLE});
    MPI_Datatype below = made(2, ones, (MPI_Aint[]){0, 3}, (MPI_Datatype[]){MPI_INT, MPI_UB}), several;
    MPI_Type_contiguous(2, both, &several);
    bounds(both, -8, 28);
    bounds(empty, -8, 28);
    bounds(nested, -8, 56);
    bounds(below, 0, 3);
    bounds(several, -8, 56);
    /* Every fifth integer, by the extent that MPI_UB gives. */
    MPI_Datatype spaced = made(2, ones, (MPI_Aint[]){0, 20}, (MPI_Datatype[]){MPI_INT, MPI_UB});
    int data[20], got[4] = {0};
    for (int i = 0; i < 20; i++) data[i] = i;
    MPI_Sendrecv(data, 4, spaced, 1 - rank, 0, got, 4, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 4; i++) CHECK_EQ(got[i], 5 * i);
    MPI_Type_free(&both), MPI_Type_free(&empty), MPI_Type_free(&nested), MPI_Type_free(&several);
    MPI_Type_free(&below), MPI_Type_free(&spaced);
    return finish();
}
