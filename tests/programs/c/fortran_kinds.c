// The types of Fortran's kinds are predefined: the same arguments give the same handle, which can
// be used at once and never be freed, and MPI_Type_get_contents gives it back.
//# ranks: 1
//# differential: mpich
#include "check.h"

static MPI_Datatype first_member(MPI_Datatype outer) {
    int integers[4];
    MPI_Aint addresses[2];
    MPI_Datatype member;
    MPI_Type_get_contents(outer, 1, 0, 1, integers, addresses, &member);
    return member;
}

int main(int argc, char **argv) {
    MPI_Datatype real, again, integer, complex, outer;
    int bytes, integers, addresses, types, combiner, arguments[2];
    start(&argc, &argv);
    MPI_Type_create_f90_real(6, 30, &real);
    MPI_Type_create_f90_real(6, 30, &again);
    CHECK(real == again);
    MPI_Type_create_f90_real(15, 300, &again);
    CHECK(real != again);
    MPI_Type_create_f90_complex(6, 30, &complex);
    CHECK(complex != real);
    MPI_Type_create_f90_integer(9, &integer);
    MPI_Type_size(integer, &bytes);
    CHECK_EQ(bytes, 4);
    MPI_Type_get_envelope(real, &integers, &addresses, &types, &combiner);
    CHECK(integers == 2 && addresses == 0 && types == 0 && combiner == MPI_COMBINER_F90_REAL);
    MPI_Type_get_contents(real, 2, 0, 0, arguments, NULL, NULL);
    CHECK(arguments[0] == 6 && arguments[1] == 30);
    MPI_Type_contiguous(3, real, &outer);
    CHECK(first_member(outer) == real);
    MPI_Type_free(&outer);
    float out[2] = {1.5f, 2.5f}, in[2] = {0};
    MPI_Sendrecv(out, 2, real, 0, 0, in, 2, real, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    CHECK(in[0] == 1.5f && in[1] == 2.5f);
    return finish();
}
