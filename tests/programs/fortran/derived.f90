! A program of the module mpi_f08.
program derived
  use mpi_f08
  implicit none
  integer :: rank, size, total
  type(MPI_Status) :: status
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (total /= size * (size - 1) / 2) call MPI_Abort(MPI_COMM_WORLD, 3)
  call MPI_Sendrecv_replace(total, 1, MPI_INTEGER, rank, 2, rank, 2, MPI_COMM_WORLD, status)
  if (status%MPI_TAG /= 2) call MPI_Abort(MPI_COMM_WORLD, 3)
  call MPI_Finalize()
  print '(a,i0)', 'done ', rank
end program
