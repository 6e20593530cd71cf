! The sum of one value of each rank of a communicator that another language passes.
subroutine totals(comm, value, total, size)
  use mpi
  implicit none
  integer, intent(in) :: comm
  double precision, intent(in) :: value
  double precision, intent(out) :: total
  integer, intent(out) :: size
  integer :: ierr
  total = 0
  size = 0
  if (comm == MPI_COMM_NULL) return
  call MPI_Comm_size(comm, size, ierr)
  call MPI_Allreduce(value, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, comm, ierr)
end subroutine
