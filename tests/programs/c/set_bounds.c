/* Bounds of types that are made of types whose bounds were set: as the standard says, and for programs of MPICH's as
 * they are there. */
//# ranks: 1
//# abi: mpich mpi5 openmpi
#include "check.h"

#ifdef MPICH_NAME
#define EITHER(standard, mpich) (mpich)
#else
#define EITHER(standard, mpich) (standard)
#endif

static void expect(MPI_Datatype type, MPI_Aint lb, MPI_Aint extent)
{
    MPI_Aint found[2];
    MPI_Type_get_extent(type, &found[0], &found[1]);
    CHECK(found[0] == lb && found[1] == extent);
    MPI_Type_free(&type);
}

/* A struct of such an integer and a double at 8. */
static MPI_Datatype with_double(MPI_Aint lb, MPI_Aint extent)
{
    MPI_Datatype members[2] = {MPI_DATATYPE_NULL, MPI_DOUBLE}, made;
    MPI_Type_create_resized(MPI_INT, lb, extent, &members[0]);
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, members, &made);
    MPI_Type_free(&members[0]);
    return made;
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    MPI_Datatype made, again;
    expect(with_double(0, 12), 0, EITHER(12, 16));
    expect(with_double(-4, 20), -4, EITHER(20, 24));
    expect(with_double(4, 4), 4, EITHER(4, 16));
    /* It stays set in what is made of it. */
    made = with_double(0, 12);
    MPI_Type_contiguous(3, made, &again);
    expect(again, 0, EITHER(36, 48));
    MPI_Type_create_hvector(2, 1, 5, made, &again);
    expect(again, 0, EITHER(17, 21));
    MPI_Type_free(&made);
    /* Arrays set theirs. */
    MPI_Type_create_subarray(1, (int[]){5}, (int[]){1}, (int[]){3}, MPI_ORDER_C, MPI_INT, &made);
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 32}, (MPI_Datatype[]){made, MPI_CHAR}, &again);
    expect(again, 0, EITHER(20, 36));
    MPI_Type_free(&made);
    /* All are padded, not only structs. */
    MPI_Type_create_hindexed(2, (int[]){1, 1}, (MPI_Aint[]){0, 5}, MPI_INT, &made);
    expect(made, 0, EITHER(12, 9));
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_DOUBLE, MPI_CHAR}, &made);
    expect(made, 0, 16);
    return finish();
}
