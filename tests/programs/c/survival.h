// What is needed to go on after a failure, where the headers of a library do not have it.
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#ifndef MPIX_ERR_PROC_FAILED
#error "the header has no MPIX_ERR_PROC_FAILED"
#endif
#ifdef MPICH_NUMVERSION
// The wheel of MPICH lacks two of the functions, so that nothing can be linked to them.
#include <dlfcn.h>
__attribute__((unused)) static int is_revoked(MPI_Comm comm, int *flag) {
    int (*function)(MPI_Comm, int *) = (int (*)(MPI_Comm, int *))dlsym(dlopen(NULL, RTLD_LAZY), "MPIX_Comm_is_revoked");
    return function(comm, flag);
}
__attribute__((unused)) static int ack_failed(MPI_Comm comm, int count, int *done) {
    int (*function)(MPI_Comm, int, int *) =
        (int (*)(MPI_Comm, int, int *))dlsym(dlopen(NULL, RTLD_LAZY), "MPIX_Comm_ack_failed");
    return function(comm, count, done);
}
#define MPIX_Comm_is_revoked is_revoked
#define MPIX_Comm_ack_failed ack_failed
#endif
