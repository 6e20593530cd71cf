! Attributes that one language sets and the other reads (MPI 19.3.7): Fortran calls C's procedures by their own names.
program languages
  use mpi
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    integer(c_int) function c_get(comm, keyval, value, flag) bind(C, name="MPI_Comm_get_attr")
      import :: c_int, c_ptr
      integer(c_int), value :: comm, keyval
      type(c_ptr) :: value
      integer(c_int) :: flag
    end function
    integer(c_int) function c_set(comm, keyval, value) bind(C, name="MPI_Comm_set_attr")
      import :: c_int, c_ptr
      integer(c_int), value :: comm, keyval
      type(c_ptr), value :: value
    end function
  end interface
  integer :: rank, ierr, keyval, number
  integer, target :: here
  integer, pointer :: short
  integer(kind=MPI_ADDRESS_KIND), pointer :: long
  integer(kind=MPI_ADDRESS_KIND) :: value, extra
  integer(c_int) :: found
  type(c_ptr) :: pointer
  logical :: flag
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  extra = 0
  call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, keyval, extra, ierr)

  ! C gets the address of Fortran's integer.
  value = 2_MPI_ADDRESS_KIND**40 + 5
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, value, ierr)
  ierr = c_get(MPI_COMM_WORLD, keyval, pointer, found)
  call expect(ierr == 0 .and. found /= 0, 'found by C')
  call c_f_pointer(pointer, long)
  call expect(long == value, 'a long integer')
  call MPI_Attr_put(MPI_COMM_WORLD, keyval, -3, ierr)
  ierr = c_get(MPI_COMM_WORLD, keyval, pointer, found)
  call c_f_pointer(pointer, short)
  call expect(short == -3, 'an integer')

  ! Fortran gets the address that C has set.
  ierr = c_set(MPI_COMM_WORLD, keyval, c_loc(here))
  call MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, value, flag, ierr)
  call expect(flag .and. value == transfer(c_loc(here), value), 'an address')

  ! The predefined ones: the keys are one less in C.
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
  ierr = c_get(MPI_COMM_WORLD, MPI_TAG_UB - 1, pointer, found)
  call c_f_pointer(pointer, short)
  call expect(flag .and. found /= 0 .and. short == value, 'a predefined attribute')
  call MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval, ierr)
  call MPI_Attr_get(MPI_COMM_WORLD, keyval, number, flag, ierr)
  call expect(.not. flag, 'deleted')
  call MPI_Finalize(ierr)
  print '(a,i0)', 'done ', rank
contains
  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    print '(a,i0,2a)', 'rank ', rank, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 3, ierr)
  end subroutine
end program
