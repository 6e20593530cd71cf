// Initialisation state, versions, names, clocks and finalisation.
//# ranks: 1 3
//# abi: mpich, mpi5, mpi5-wheel, openmpi
#include "check.h"

int main(int argc, char **argv) {
    int flag, version, subversion, length, level;
    char name[MPI_MAX_PROCESSOR_NAME], library[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Initialized(&flag);
    CHECK(!flag);
    start(&argc, &argv);
    MPI_Initialized(&flag);
    CHECK(flag);
    MPI_Get_version(&version, &subversion);
    CHECK(version >= 3);
    MPI_Get_processor_name(name, &length);
    CHECK((int)strlen(name) == length && length > 0);
    MPI_Get_library_version(library, &length);
    CHECK((int)strlen(library) == length && length > 0);
    MPI_Query_thread(&level);
    CHECK(level >= MPI_THREAD_SINGLE && level <= MPI_THREAD_MULTIPLE);
    double before = MPI_Wtime(), tick = MPI_Wtick();
    CHECK(tick > 0 && tick < 1e-3);
    CHECK(MPI_Wtime() >= before);
    finish();
    MPI_Finalized(&flag);
    return flag ? 0 : 5;
}
