// What is needed to go on after a failure, where the headers of a library do not have it.
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#ifndef MPIX_ERR_PROC_FAILED
#error "the header has no MPIX_ERR_PROC_FAILED"
#endif
int MPIX_Comm_is_revoked(MPI_Comm comm, int *flag);
int MPIX_Comm_ack_failed(MPI_Comm comm, int num_to_ack, int *num_acked);
