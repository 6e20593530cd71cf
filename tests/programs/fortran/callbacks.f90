! Functions of the program that MPI calls: attributes, reductions, error handlers, generalized requests.
module functions
  use mpi
  implicit none
  integer :: copies = 0, deletions = 0, handled = 0, queries = 0, frees = 0, cancels = 0
  ! What the functions of a request get: a variable that others may read.
  integer(kind=MPI_ADDRESS_KIND) :: state
contains
  subroutine copy(object, keyval, extra, value, copied, flag, ierror)
    integer :: object, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra, value, copied
    logical :: flag
    copies = copies + 1
    copied = value + extra
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine
  subroutine delete(object, keyval, value, extra, ierror)
    integer :: object, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra, value
    if (extra == 1000) deletions = deletions + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine old_copy(object, keyval, extra, value, copied, flag, ierror)
    integer :: object, keyval, extra, value, copied, ierror
    logical :: flag
    copied = value * extra
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine
  subroutine longest(in, inout, length, datatype)
    integer :: length, datatype
    integer :: in(length), inout(length)
    if (datatype /= MPI_INTEGER) call MPI_Abort(MPI_COMM_WORLD, 4, length)
    inout = max(in, inout) + 0 * datatype
  end subroutine
  subroutine handler(comm, code)
    integer :: comm, code, class, ierror
    call MPI_Error_class(code, class, ierror)
    if (comm == MPI_COMM_WORLD .and. class == MPI_ERR_RANK) handled = handled + 1
  end subroutine
  subroutine query(extra, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    integer :: status(MPI_STATUS_SIZE), ierror
    queries = queries + int(extra)
    call MPI_Status_set_elements(status, MPI_INTEGER, 5, ierror)
    call MPI_Status_set_cancelled(status, .false., ierror)
    status(MPI_SOURCE) = 11
    status(MPI_TAG) = 12
  end subroutine
  subroutine release(extra, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    integer :: ierror
    frees = frees + int(extra)
    ierror = MPI_SUCCESS
  end subroutine
  subroutine cancel(extra, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    logical :: complete
    integer :: ierror
    if (.not. complete) cancels = cancels + int(extra)
    ierror = MPI_SUCCESS
  end subroutine
end module

program callbacks
  use mpi
  use functions
  implicit none
  integer :: rank, size, ierr, keyval, old, duplicate, datatype, win, op, errhandler, request, n
  integer :: status(MPI_STATUS_SIZE), values(2), got(2), number
  integer(kind=MPI_ADDRESS_KIND) :: value, extra
  logical :: flag
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)

  ! Attributes of 64 bits.
  extra = 1000
  call MPI_Comm_create_keyval(copy, delete, keyval, extra, ierr)
  value = 2_MPI_ADDRESS_KIND**40 + 7
  call MPI_Comm_set_attr(MPI_COMM_SELF, keyval, value, ierr)
  call MPI_Comm_dup(MPI_COMM_SELF, duplicate, ierr)
  call MPI_Comm_get_attr(duplicate, keyval, value, flag, ierr)
  call expect(flag .and. value == 2_MPI_ADDRESS_KIND**40 + 1007 .and. copies == 1, 'copied')
  call MPI_Comm_free(duplicate, ierr)
  call expect(deletions == 1, 'deleted with the communicator')
  call MPI_Comm_delete_attr(MPI_COMM_SELF, keyval, ierr)
  call expect(deletions == 2, 'deleted')
  call MPI_Comm_get_attr(MPI_COMM_SELF, keyval, value, flag, ierr)
  call expect(.not. flag, 'no attribute')
  call MPI_Comm_free_keyval(keyval, ierr)
  call expect(keyval == MPI_KEYVAL_INVALID, 'keyval freed')

  ! The standard's functions.
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, extra, ierr)
  value = -5
  call MPI_Comm_set_attr(MPI_COMM_SELF, keyval, value, ierr)
  call MPI_Comm_dup(MPI_COMM_SELF, duplicate, ierr)
  value = 0
  call MPI_Comm_get_attr(duplicate, keyval, value, flag, ierr)
  call expect(flag .and. value == -5, 'dup function')
  call MPI_Comm_free(duplicate, ierr)
  call MPI_Comm_free_keyval(keyval, ierr)
  call MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, keyval, extra, ierr)
  value = 9
  call MPI_Type_set_attr(MPI_INTEGER, keyval, value, ierr)
  call MPI_Type_dup(MPI_INTEGER, datatype, ierr)
  call MPI_Type_get_attr(datatype, keyval, value, flag, ierr)
  call expect(.not. flag, 'null copy function')
  call MPI_Type_get_attr(MPI_INTEGER, keyval, value, flag, ierr)
  call expect(flag .and. value == 9, 'type attribute')
  call MPI_Type_delete_attr(MPI_INTEGER, keyval, ierr)
  call MPI_Type_free(datatype, ierr)
  call MPI_Type_free_keyval(keyval, ierr)

  ! Predefined attributes.
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
  call expect(flag .and. value >= 32767, 'tag ub')
  call MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, number, flag, ierr)
  call expect(flag .and. number == value, 'tag ub of MPI-1')
  extra = 8
  call MPI_Win_create(values, extra, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag, ierr)
  call expect(flag .and. value == 8, 'win size')
  call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, flag, ierr)
  call expect(flag .and. value == 4, 'win unit')
  call MPI_Get_address(values, extra, ierr)
  call MPI_Win_get_attr(win, MPI_WIN_BASE, value, flag, ierr)
  call expect(flag .and. value == extra, 'win base')
  call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, flag, ierr)
  call expect(flag .and. value == MPI_WIN_FLAVOR_CREATE, 'win flavor')
  call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, delete, keyval, 1000_MPI_ADDRESS_KIND, ierr)
  call MPI_Win_set_attr(win, keyval, 3_MPI_ADDRESS_KIND, ierr)
  call MPI_Win_get_attr(win, keyval, value, flag, ierr)
  call expect(flag .and. value == 3, 'win attribute')
  call MPI_Win_free(win, ierr)
  call expect(deletions == 3, 'deleted with the window')
  call MPI_Win_free_keyval(keyval, ierr)

  ! MPI-1: INTEGER.
  call MPI_Keyval_create(old_copy, MPI_NULL_DELETE_FN, old, 3, ierr)
  call MPI_Attr_put(MPI_COMM_SELF, old, -14, ierr)
  call MPI_Comm_dup(MPI_COMM_SELF, duplicate, ierr)
  call MPI_Attr_get(duplicate, old, number, flag, ierr)
  call expect(flag .and. number == -42, 'MPI-1 copied')
  call MPI_Comm_free(duplicate, ierr)
  call MPI_Attr_delete(MPI_COMM_SELF, old, ierr)
  call MPI_Keyval_free(old, ierr)

  ! Reductions.
  call MPI_Op_create(longest, .true., op, ierr)
  values = [rank, -rank]
  call MPI_Allreduce(values, got, 2, MPI_INTEGER, op, MPI_COMM_WORLD, ierr)
  call expect(got(1) == size - 1 .and. got(2) == 0, 'user operation')
  call MPI_Op_free(op, ierr)
  call expect(op == MPI_OP_NULL, 'operation freed')

  ! Error handlers.
  call MPI_Comm_create_errhandler(handler, errhandler, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler, ierr)
  call MPI_Send(values, 1, MPI_INTEGER, -77, 0, MPI_COMM_WORLD, ierr)
  call expect(handled == 1, 'error handler')
  call MPI_Errhandler_free(errhandler, ierr)

  ! Generalized requests.
  state = 100
  call MPI_Grequest_start(query, release, cancel, state, request, ierr)
  call MPI_Cancel(request, ierr)
  call expect(cancels == 100, 'cancel function')
  call MPI_Test(request, flag, status, ierr)
  call expect(.not. flag, 'not complete')
  ! The functions get the variable itself.
  state = 1000
  call MPI_Grequest_complete(request, ierr)
  call MPI_Wait(request, status, ierr)
  call MPI_Get_count(status, MPI_INTEGER, n, ierr)
  call expect(n == 5 .and. status(MPI_SOURCE) == 11 .and. status(MPI_TAG) == 12, 'query function')
  call expect(queries >= 1000 .and. frees == 1000, 'free function')
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
