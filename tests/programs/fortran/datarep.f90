! A data representation with functions in Fortran: an integer is its negative in the file.
module negatives
  use mpi_f08
  use iso_c_binding
  implicit none
  integer :: calls = 0
contains
  subroutine negate(from, to, count, state)
    integer, intent(in) :: count
    integer, intent(in) :: from(count)
    integer, intent(out) :: to(count)
    integer(kind=MPI_ADDRESS_KIND), intent(in) :: state
    if (state /= 42) error stop 'the extra state'
    to = -from
    calls = calls + 1
  end subroutine negate

  subroutine read_fn(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer, pointer :: user(:), file(:)
    call c_f_pointer(userbuf, user, [int(position) + count])
    call c_f_pointer(filebuf, file, [count])
    if (datatype /= MPI_INTEGER) error stop 'the datatype'
    call negate(file, user(position + 1 : position + count), count, extra_state)
    ierror = MPI_SUCCESS
  end subroutine read_fn

  subroutine write_fn(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer, pointer :: user(:), file(:)
    call c_f_pointer(userbuf, user, [int(position) + count])
    call c_f_pointer(filebuf, file, [count])
    if (datatype /= MPI_INTEGER) error stop 'the datatype'
    call negate(user(position + 1 : position + count), file, count, extra_state)
    ierror = MPI_SUCCESS
  end subroutine write_fn

  subroutine extent_of(datatype, extent, extra_state, ierror)
    type(MPI_Datatype) :: datatype
    integer(kind=MPI_ADDRESS_KIND) :: extent, extra_state
    integer :: ierror
    if (datatype /= MPI_INTEGER .or. extra_state /= 42) error stop 'the extent'
    extent = 4
    ierror = MPI_SUCCESS
  end subroutine extent_of
end module negatives

program datarep
  use negatives
  implicit none
  integer(kind=MPI_ADDRESS_KIND) :: state
  integer(kind=MPI_OFFSET_KIND) :: start
  integer :: error, class, numbers(3), rank
  character(len=64) :: name
  type(MPI_File) :: file
  type(MPI_Status) :: status
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  state = 42
  call MPI_Register_datarep('negative', read_fn, write_fn, extent_of, state)
  call MPI_Register_datarep('as it is', MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of, state)
  state = 0
  call MPI_Register_datarep('negative', read_fn, write_fn, extent_of, state, error)
  call MPI_Error_class(error, class)
  if (class /= MPI_ERR_DUP_DATAREP) error stop 'it is there already'
  write (name, '(a, i0)') '/dev/shm/datarep-fortran-', getpid()
  call MPI_File_open(MPI_COMM_SELF, name, &
      MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, file)
  start = 0
  call MPI_File_set_view(file, start, MPI_INTEGER, MPI_INTEGER, 'negative', MPI_INFO_NULL)
  call MPI_File_write(file, [1, 2, 3], 3, MPI_INTEGER, status)
  call MPI_File_read_at(file, start, numbers, 3, MPI_INTEGER, status)
  if (any(numbers /= [1, 2, 3]) .or. calls /= 2) error stop 'there and back'
  call MPI_File_set_view(file, start, MPI_INTEGER, MPI_INTEGER, 'as it is', MPI_INFO_NULL)
  call MPI_File_read_at(file, start, numbers, 3, MPI_INTEGER, status)
  if (any(numbers /= [-1, -2, -3]) .or. calls /= 2) error stop 'in the file'
  call MPI_File_close(file)
  print '(a, i0)', 'done ', rank
  call MPI_Finalize()
end program datarep
