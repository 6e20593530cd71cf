! A tool: it defines mpi_send and calls pmpi_send.
subroutine mpi_send(buf, count, datatype, dest, tag, comm, ierror)
  implicit none
  integer :: buf(*), count, datatype, dest, tag, comm, ierror, sends
  common /tool/ sends
  sends = sends + 1
  call pmpi_send(buf, count, datatype, dest, tag, comm, ierror)
end subroutine
subroutine mpi_finalize(ierror)
  implicit none
  integer :: ierror, sends, rank
  include 'mpif.h'
  common /tool/ sends
  call pmpi_comm_rank(MPI_COMM_WORLD, rank, ierror)
  print '(a,i0,a,i0)', 'tool: rank ', rank, ' sends ', sends
  call pmpi_finalize(ierror)
end subroutine
