! What the standard says and MPICH's libraries do otherwise, and interfaces that MPICH 4 has not.
program beyond
  use mpi
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: rank, ierr, index, n, info, keyval, duplicate, requests(2), status(MPI_STATUS_SIZE)
  integer :: source, tag, outcount, indices(2)
  integer(kind=MPI_ADDRESS_KIND) :: value
  logical :: flag
  character(len=20) :: text
  type(c_ptr) :: pointer
  integer, pointer :: memory(:)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  ! MPICH 4 adds 1 to MPI_UNDEFINED.
  requests = MPI_REQUEST_NULL
  call MPI_Testany(2, requests, index, flag, status, ierr)
  call expect(flag .and. index == MPI_UNDEFINED, 'testany')
  call MPI_Waitany(2, requests, index, status, ierr)
  call expect(index == MPI_UNDEFINED, 'waitany')
  ! MPICH fills the upper half of an INTEGER attribute with zeros.
  call MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, keyval, 0, ierr)
  call MPI_Attr_put(MPI_COMM_SELF, keyval, -42, ierr)
  call MPI_Comm_dup(MPI_COMM_SELF, duplicate, ierr)
  call MPI_Comm_get_attr(duplicate, keyval, value, flag, ierr)
  call expect(flag .and. value == -42, 'INTEGER attribute')
  call MPI_Comm_free(duplicate, ierr)
  ! MPICH refuses a value that is too long.
  call MPI_Info_create(info, ierr)
  call MPI_Info_set(info, 'key', 'a value', ierr)
  text = ' '
  call MPI_Info_get(info, 'key', 3, text, flag, ierr)
  call expect(flag .and. text == 'a v', 'value cut off')
  call MPI_Info_free(info, ierr)
  ! TYPE(C_PTR).
  call MPI_Alloc_mem(64_MPI_ADDRESS_KIND, MPI_INFO_NULL, pointer, ierr)
  call c_f_pointer(pointer, memory, [16])
  memory = rank
  call MPI_Allreduce(MPI_IN_PLACE, memory, 16, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
  call expect(all(memory == memory(1)), 'memory')
  call MPI_Free_mem(memory, ierr)
  ! MPI-4.1.
  call MPI_Isend(rank, 1, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, requests(2), ierr)
  call MPI_Recv(n, 1, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, status, ierr)
  call MPI_Status_get_source(status, source, ierr)
  call MPI_Status_get_tag(status, tag, ierr)
  call expect(source == rank .and. tag == 3, 'status')
  do
    call MPI_Request_get_status_some(2, requests, outcount, indices, MPI_STATUSES_IGNORE, ierr)
    if (outcount > 0) exit
  end do
  call expect(outcount == 1 .and. indices(1) == 2, 'request get status some')
  call MPI_Wait(requests(2), MPI_STATUS_IGNORE, ierr)
  ! MPICH's MPI_SIZEOF takes no arrays of two dimensions.
  call MPI_Sizeof(reshape([1d0, 2d0, 3d0, 4d0], [2, 2]), n, ierr)
  call expect(n == 8 .and. ierr == MPI_SUCCESS, 'sizeof')
  ! There is no such program, and the error says so.
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
  call MPI_Comm_spawn('program ', MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, duplicate, &
    MPI_ERRCODES_IGNORE, ierr)
  call MPI_Error_class(ierr, n, index)
  call expect(n == MPI_ERR_SPAWN, 'spawn')
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
