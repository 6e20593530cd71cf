! CHARACTER arguments: blanks at the end do not count, what is returned ends with blanks.
program strings
  use mpi
  implicit none
  integer :: rank, ierr, n, info, datatype, win, code, class
  integer(kind=MPI_ADDRESS_KIND) :: bytes, base
  character(len=MPI_MAX_OBJECT_NAME) :: name
  character(len=MPI_MAX_ERROR_STRING) :: message
  character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
  character(len=MPI_MAX_PROCESSOR_NAME) :: processor
  character(len=5) :: short
  character(len=40) :: value
  logical :: flag
  integer :: buffer(2)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  name = repeat('x', len(name))
  call MPI_Comm_get_name(MPI_COMM_WORLD, name, n, ierr)
  call expect(name == 'MPI_COMM_WORLD' .and. n == 14, 'name of the world')
  call MPI_Comm_set_name(MPI_COMM_WORLD, 'a  name   ', ierr)
  call MPI_Comm_get_name(MPI_COMM_WORLD, name, n, ierr)
  call expect(name == 'a  name' .and. n == 7, 'set name')
  short = 'xxxxx'
  call MPI_Comm_get_name(MPI_COMM_WORLD, short, n, ierr)
  call expect(short == 'a  na', 'cut off')
  call MPI_Comm_set_name(MPI_COMM_WORLD, '', ierr)
  call MPI_Comm_get_name(MPI_COMM_WORLD, name, n, ierr)
  call expect(name == ' ' .and. n == 0, 'empty name')
  call MPI_Type_get_name(MPI_DOUBLE_PRECISION, name, n, ierr)
  call expect(name == 'MPI_DOUBLE_PRECISION', 'name of a datatype')
  call MPI_Type_contiguous(2, MPI_INTEGER, datatype, ierr)
  call MPI_Type_set_name(datatype, 'pair', ierr)
  call MPI_Type_get_name(datatype, name, n, ierr)
  call expect(name == 'pair' .and. n == 4, 'set name of a datatype')
  call MPI_Type_free(datatype, ierr)
  bytes = 8
  call MPI_Win_create(buffer, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call MPI_Win_set_name(win, 'window ', ierr)
  call MPI_Win_get_name(win, name, n, ierr)
  call expect(name == 'window' .and. n == 6, 'name of a window')
  call MPI_Win_free(win, ierr)

  call MPI_Info_create(info, ierr)
  call MPI_Info_set(info, ' key ', ' a value  ', ierr)
  call MPI_Info_set(info, 'other', 'x', ierr)
  call MPI_Info_get_nkeys(info, n, ierr)
  call expect(n == 2, 'keys')
  call MPI_Info_get_nthkey(info, 0, name, ierr)
  call expect(name == 'key', 'nth key')
  value = 'unchanged'
  call MPI_Info_get(info, 'absent', 40, value, flag, ierr)
  call expect(.not. flag .and. value == 'unchanged', 'absent key')
  call MPI_Info_get_valuelen(info, 'key', n, flag, ierr)
  call expect(flag .and. n == 7, 'length of a value')
  call MPI_Info_get(info, 'key', 40, value, flag, ierr)
  call expect(flag .and. value == 'a value', 'value')
  n = 0
  value = 'unchanged'
  call MPI_Info_get_string(info, 'key', n, value, flag, ierr)
  call expect(flag .and. n == 7 .and. value == 'unchanged', 'asked for the length')
  n = 40
  call MPI_Info_get_string(info, 'key', n, value, flag, ierr)
  call expect(flag .and. n == 7 .and. value == 'a value', 'string')
  call MPI_Info_delete(info, 'key', ierr)
  call MPI_Info_get(info, 'key', 40, value, flag, ierr)
  call expect(.not. flag, 'deleted key')
  call MPI_Info_free(info, ierr)

  call MPI_Get_processor_name(processor, n, ierr)
  call expect(n > 0 .and. len_trim(processor) == n, 'processor')
  call MPI_Get_library_version(version, n, ierr)
  call expect(n > 0, 'version')
  call MPI_Error_string(MPI_ERR_RANK, message, n, ierr)
  call expect(n > 0 .and. len_trim(message) == n, 'error string')
  call MPI_Add_error_class(class, ierr)
  call MPI_Add_error_code(class, code, ierr)
  call MPI_Add_error_string(code, 'ours  ', ierr)
  call MPI_Error_string(code, message, n, ierr)
  call expect(message == 'ours' .and. n == 4, 'added error')

  ! Memory from MPI, as an integer of the size of an address.
  bytes = 64
  call MPI_Alloc_mem(bytes, MPI_INFO_NULL, base, ierr)
  call expect(base /= 0, 'alloc mem')
  call release(base)
  call MPI_Finalize(ierr)
  print '(a,i0)', 'done ', rank
contains
  subroutine release(address)
    use, intrinsic :: iso_c_binding
    integer(kind=MPI_ADDRESS_KIND), intent(in) :: address
    type(c_ptr) :: pointer
    integer, pointer :: memory(:)
    pointer = transfer(address, pointer)
    call c_f_pointer(pointer, memory, [16])
    memory = 7
    call MPI_Free_mem(memory, ierr)
  end subroutine
  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    print '(a,i0,2a)', 'rank ', rank, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 3, ierr)
  end subroutine
end program
