! A data representation with functions in Fortran.
program datarep
  use mpi_f08
  implicit none
  integer(kind=MPI_ADDRESS_KIND) :: state
  call MPI_Init()
  state = 0
  call MPI_Register_datarep('mine', MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of, state)
  call MPI_Finalize()
contains
  subroutine extent_of(datatype, extent, extra_state, ierror)
    type(MPI_Datatype) :: datatype
    integer(kind=MPI_ADDRESS_KIND) :: extent, extra_state
    integer :: ierror
    ierror = MPI_SUCCESS
    extent = extra_state + merge(0, 4, datatype == MPI_DATATYPE_NULL)
  end subroutine extent_of
end program datarep
