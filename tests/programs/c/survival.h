// What is needed to go on after a failure, where the headers of a library do not have it.
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#ifndef MPIX_ERR_PROC_FAILED
#error "the header has no MPIX_ERR_PROC_FAILED"
#endif
// The wheels of MPICH and Open MPI lack some of the functions, so that nothing can be linked to them.
#if defined(MPICH_NUMVERSION) || defined(OPEN_MPI)
#include <dlfcn.h>
#define FROM_LIBRARY(name, parameters, arguments)                                              \
    __attribute__((unused)) static int later_##name parameters {                               \
        int(*function) parameters = (int(*) parameters)dlsym(dlopen(NULL, RTLD_LAZY), #name);  \
        return function arguments;                                                             \
    }
FROM_LIBRARY(MPIX_Comm_ishrink, (MPI_Comm comm, MPI_Comm *smaller, MPI_Request *request), (comm, smaller, request))
#define MPIX_Comm_ishrink later_MPIX_Comm_ishrink
#ifdef MPICH_NUMVERSION
FROM_LIBRARY(MPIX_Comm_iagree, (MPI_Comm comm, int *flag, MPI_Request *request), (comm, flag, request))
FROM_LIBRARY(MPIX_Comm_is_revoked, (MPI_Comm comm, int *flag), (comm, flag))
FROM_LIBRARY(MPIX_Comm_ack_failed, (MPI_Comm comm, int count, int *done), (comm, count, done))
#define MPIX_Comm_iagree later_MPIX_Comm_iagree
#define MPIX_Comm_is_revoked later_MPIX_Comm_is_revoked
#define MPIX_Comm_ack_failed later_MPIX_Comm_ack_failed
#endif
// Neither has these.
FROM_LIBRARY(MPIX_Win_revoke, (MPI_Win win), (win))
FROM_LIBRARY(MPIX_Win_is_revoked, (MPI_Win win, int *flag), (win, flag))
FROM_LIBRARY(MPIX_Win_get_failed, (MPI_Win win, MPI_Group *failed), (win, failed))
FROM_LIBRARY(MPIX_File_revoke, (MPI_File file), (file))
FROM_LIBRARY(MPIX_File_is_revoked, (MPI_File file, int *flag), (file, flag))
FROM_LIBRARY(MPIX_File_get_failed, (MPI_File file, MPI_Group *failed), (file, failed))
#define MPIX_Win_revoke later_MPIX_Win_revoke
#define MPIX_Win_is_revoked later_MPIX_Win_is_revoked
#define MPIX_Win_get_failed later_MPIX_Win_get_failed
#define MPIX_File_revoke later_MPIX_File_revoke
#define MPIX_File_is_revoked later_MPIX_File_is_revoked
#define MPIX_File_get_failed later_MPIX_File_get_failed
#endif
