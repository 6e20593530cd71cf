! An argument that MPI refuses.
program refused
  use mpi_f08
  implicit none
  integer :: values(10)
  call MPI_Init()
  values = 0
  call MPI_Bcast(values(1:10:2), 5, MPI_INTEGER, 7, MPI_COMM_WORLD)
  call MPI_Finalize()
end program refused
