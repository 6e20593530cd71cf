// A profiling tool as the standard has it (MPI 15.2): it defines MPI functions, counts their calls and
// calls them by their PMPI names. It is preloaded into programs that do not know of it, or linked
// before the MPI library.
#include <mpi.h>
#include <stdio.h>

static int level = 1;
static unsigned long sends, receives, others;

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    sends += level > 0;
    return PMPI_Send(buffer, count, type, to, tag, comm);
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status *status) {
    receives += level > 0;
    return PMPI_Recv(buffer, count, type, from, tag, comm, status);
}

int MPI_Barrier(MPI_Comm comm) {
    others += level > 0;
    return PMPI_Barrier(comm);
}

// What the program says with MPI_Pcontrol is for tools; the library does nothing.
int MPI_Pcontrol(const int wanted, ...) {
    level = wanted;
    return MPI_SUCCESS;
}

int MPI_Finalize(void) {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("profiler: rank %d: sends %lu receives %lu barriers %lu\n", rank, sends, receives, others);
    fflush(stdout);
    return PMPI_Finalize();
}
