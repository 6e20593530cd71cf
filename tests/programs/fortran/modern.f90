! The module mpi_f08: handles, statuses, optional errors, callbacks, large counts, strings, windows.
module functions
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  implicit none
  integer :: copies = 0, deletes = 0, errors = 0, seen_error = 0
  integer :: queries = 0, frees = 0, cancels = 0, seen_sends = 0

contains

  subroutine wrong(what)
    character(len=*), intent(in) :: what
    print '(2a)', 'wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 3)
  end subroutine wrong

  ! The larger of the squares, which MPI has not.
  subroutine square(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    if (datatype /= MPI_INTEGER) call wrong("datatype of an operation")
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    b = max(a * a, b * b)
  end subroutine square

  subroutine copy(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    if (oldcomm /= MPI_COMM_WORLD .or. comm_keyval == MPI_KEYVAL_INVALID) call wrong("copy's communicator")
    copies = copies + 1
    attribute_val_out = attribute_val_in + extra_state
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine copy

  subroutine delete(comm, comm_keyval, attribute_val, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: attribute_val, extra_state
    if (comm == MPI_COMM_NULL .or. comm_keyval == MPI_KEYVAL_INVALID) call wrong("delete's communicator")
    if (attribute_val == 0 .or. extra_state /= 1000) call wrong("delete's values")
    deletes = deletes + 1
    ierror = MPI_SUCCESS
  end subroutine delete

  subroutine handler(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    if (comm /= MPI_COMM_WORLD) call wrong("the handler's communicator")
    errors = errors + 1
    seen_error = error_code
  end subroutine handler

  subroutine query(extra_state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    queries = queries + 1
    call MPI_Status_set_elements(status, MPI_INTEGER, int(extra_state))
    call MPI_Status_set_cancelled(status, .false.)
    status%MPI_SOURCE = 4
    status%MPI_TAG = 5
    ierror = MPI_SUCCESS
  end subroutine query

  subroutine release(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    if (extra_state /= 3) call wrong("free's state")
    frees = frees + 1
    ierror = MPI_SUCCESS
  end subroutine release

  subroutine cancel(extra_state, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    if (extra_state /= 3 .or. complete) call wrong("cancel's arguments")
    cancels = cancels + 1
    ierror = MPI_SUCCESS
  end subroutine cancel
end module functions

! A tool: it sees the calls of the program.
subroutine MPI_Ssend_f08ts(buf, count, datatype, dest, tag, comm, ierror)
  use mpi_f08, only: MPI_Datatype, MPI_Comm, PMPI_Ssend
  use functions, only: seen_sends
  implicit none
  type(*), dimension(..), intent(in) :: buf
  integer, intent(in) :: count, dest, tag
  type(MPI_Datatype), intent(in) :: datatype
  type(MPI_Comm), intent(in) :: comm
  integer, optional, intent(out) :: ierror
  seen_sends = seen_sends + count
  call PMPI_Ssend(buf, count, datatype, dest, tag, comm, ierror)
end subroutine MPI_Ssend_f08ts

program modern
  use functions
  implicit none
  integer :: rank, ranks, next, before
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = modulo(rank + 1, ranks)
  before = modulo(rank - 1, ranks)
  call handles()
  call statuses()
  call operations()
  call attributes()
  call error_handlers()
  call generalized()
  call large()
  call strings()
  call collectives()
  call windows()
  call topologies()
  call sizes()
  call buffers()
  call tool()
  call MPI_Finalize()
  print '(a,i0)', 'done ', rank

contains

  subroutine handles()
    type(MPI_Comm) :: a, b
    type(MPI_Group) :: group
    type(MPI_Datatype) :: types(3)
    integer :: error, number
    if (MPI_COMM_WORLD == MPI_COMM_SELF .or. .not. MPI_COMM_WORLD /= MPI_COMM_NULL) call wrong("predefined")
    a = MPI_COMM_WORLD
    if (a /= MPI_COMM_WORLD .or. .not. (a .eq. MPI_COMM_WORLD) .or. (a .ne. MPI_COMM_WORLD)) call wrong("copies")
    call MPI_Comm_dup(a, b, error)
    if (error /= MPI_SUCCESS .or. a == b .or. b == MPI_COMM_NULL) call wrong("Comm_dup")
    number = b%MPI_VAL
    a%MPI_VAL = number
    if (a /= b) call wrong("MPI_VAL")
    call MPI_Comm_group(b, group)
    if (group == MPI_GROUP_NULL .or. group == MPI_GROUP_EMPTY) call wrong("group")
    call MPI_Group_free(group)
    if (group /= MPI_GROUP_NULL) call wrong("freed group")
    call MPI_Comm_free(b)
    if (b /= MPI_COMM_NULL) call wrong("freed communicator")
    types = [MPI_INTEGER, MPI_REAL, MPI_INTEGER]
    if (count(types == MPI_INTEGER) /= 2 .or. any(types == MPI_DATATYPE_NULL)) call wrong("arrays of handles")
  end subroutine handles

  subroutine statuses()
    type(MPI_Status) :: status, other
    integer :: old(MPI_STATUS_SIZE), error, value, count
    logical :: flag
    call MPI_Sendrecv(rank, 1, MPI_INTEGER, next, 17, value, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, &
                      MPI_COMM_WORLD, status)
    if (value /= before .or. status%MPI_SOURCE /= before .or. status%MPI_TAG /= 17) call wrong("a status")
    call MPI_Status_f082f(status, old, error)
    if (error /= MPI_SUCCESS .or. old(MPI_SOURCE) /= before .or. old(MPI_TAG) /= 17) call wrong("f082f")
    call MPI_Status_f2f08(old, other)
    call MPI_Get_count(other, MPI_INTEGER, count)
    if (other%MPI_SOURCE /= before .or. other%MPI_TAG /= 17 .or. count /= 1) call wrong("f2f08")
    call MPI_Test_cancelled(other, flag)
    if (flag) call wrong("cancelled")
    call MPI_Iprobe(MPI_ANY_SOURCE, 18, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE)
    if (flag) call wrong("Iprobe")
  end subroutine statuses

  subroutine operations()
    type(MPI_Op) :: op
    integer :: values(2)
    logical :: commutes
    call MPI_Op_create(square, .true., op)
    values = [rank, -ranks]
    call MPI_Allreduce(MPI_IN_PLACE, values, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    if (any(values /= [ranks * (ranks - 1) / 2, -ranks * ranks])) call wrong("a sum in place")
    values = [3, -4]
    call MPI_Reduce_local([2, 5], values, 2, MPI_INTEGER, op)
    if (any(values /= [9, 25])) call wrong("an operation of the program")
    call MPI_Op_commutative(op, commutes)
    if (.not. commutes) call wrong("Op_commutative")
    call MPI_Op_free(op)
    if (op /= MPI_OP_NULL) call wrong("freed operation")
  end subroutine operations

  subroutine attributes()
    type(MPI_Comm) :: comm
    integer :: keyval, other
    integer(kind=MPI_ADDRESS_KIND) :: value
    logical :: flag
    call MPI_Comm_create_keyval(copy, delete, keyval, 1000_MPI_ADDRESS_KIND)
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, other, 0_MPI_ADDRESS_KIND)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 12345678901_MPI_ADDRESS_KIND)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, other, 77_MPI_ADDRESS_KIND)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_get_attr(comm, keyval, value, flag)
    if (.not. flag .or. value /= 12345679901_MPI_ADDRESS_KIND .or. copies /= 1) call wrong("a copied attribute")
    call MPI_Comm_get_attr(comm, other, value, flag)
    if (.not. flag .or. value /= 77) call wrong("MPI_COMM_DUP_FN")
    call MPI_Comm_free(comm)
    if (deletes /= 1) call wrong("a deleted attribute")
    call MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval)
    call MPI_Comm_delete_attr(MPI_COMM_WORLD, other)
    if (deletes /= 2) call wrong("Comm_delete_attr")
    call MPI_Comm_free_keyval(keyval)
    call MPI_Comm_free_keyval(other)
    if (keyval /= MPI_KEYVAL_INVALID) call wrong("freed key")
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag)
    if (.not. flag .or. value < 32767) call wrong("MPI_TAG_UB")
  end subroutine attributes

  subroutine error_handlers()
    type(MPI_Errhandler) :: made, old
    integer :: error, class, length
    character(len=MPI_MAX_ERROR_STRING) :: text
    call MPI_Comm_create_errhandler(handler, made)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, made)
    call MPI_Send(rank, 1, MPI_INTEGER, ranks + 5, 0, MPI_COMM_WORLD, error)
    if (errors /= 1) call wrong("the error handler")
    ! MPICH returns MPI_SUCCESS after a handler of the program.
    if (error /= MPI_SUCCESS .and. error /= seen_error) call wrong("the error")
    call MPI_Error_class(seen_error, class)
    if (class /= MPI_ERR_RANK) call wrong("the class of an error")
    call MPI_Error_string(seen_error, text, length)
    if (length < 1 .or. text(length + 1:) /= '') call wrong("the text of an error")
    ! Without ierror the handler alone learns of it.
    call MPI_Send(rank, -1, MPI_INTEGER, next, 0, MPI_COMM_WORLD)
    if (errors /= 2) call wrong("an error without ierror")
    call MPI_Comm_get_errhandler(MPI_COMM_WORLD, old)
    if (old /= made) call wrong("Comm_get_errhandler")
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL)
    call MPI_Errhandler_free(made)
    call MPI_Errhandler_free(old)
    if (made /= MPI_ERRHANDLER_NULL) call wrong("freed handler")
  end subroutine error_handlers

  subroutine generalized()
    type(MPI_Request) :: request
    type(MPI_Status) :: status
    integer :: count
    call MPI_Grequest_start(query, release, cancel, 3_MPI_ADDRESS_KIND, request)
    call MPI_Cancel(request)
    call MPI_Grequest_complete(request)
    call MPI_Wait(request, status)
    call MPI_Get_count(status, MPI_INTEGER, count)
    if (count /= 3 .or. status%MPI_SOURCE /= 4 .or. status%MPI_TAG /= 5) call wrong("a generalized request")
    if (queries /= 1 .or. frees /= 1 .or. cancels /= 1) call wrong("the functions of a generalized request")
  end subroutine generalized

  subroutine large()
    integer(kind=MPI_COUNT_KIND) :: n, size, counts(ranks), count
    integer(kind=MPI_ADDRESS_KIND) :: places(ranks)
    integer :: a(4), all(4 * ranks), i, j
    type(MPI_Datatype) :: big
    type(MPI_Status) :: status
    n = 4
    a = [(10 * rank + i, i = 1, 4)]
    call MPI_Sendrecv(a, n, MPI_INTEGER, next, 1, all(:4), n, MPI_INTEGER, before, 1, MPI_COMM_WORLD, status)
    if (any(all(:4) /= [(10 * before + i, i = 1, 4)])) call wrong("a large count")
    call MPI_Get_count(status, MPI_INTEGER, count)
    if (count /= 4) call wrong("a large count of a status")
    counts = 4
    places = [(4_MPI_ADDRESS_KIND * j, j = 0, ranks - 1)]
    call MPI_Allgatherv(a, n, MPI_INTEGER, all, counts, places, MPI_INTEGER, MPI_COMM_WORLD)
    if (any(all /= [((10 * j + i, i = 1, 4), j = 0, ranks - 1)])) call wrong("large Allgatherv")
    call MPI_Type_contiguous(5000000000_MPI_COUNT_KIND, MPI_INTEGER, big)
    call MPI_Type_size(big, size)
    if (size /= 20000000000_MPI_COUNT_KIND) call wrong("the size of a large datatype")
    call MPI_Type_free(big)
    call MPI_Bcast(a(4:1:-3), 2_MPI_COUNT_KIND, MPI_INTEGER, 0, MPI_COMM_WORLD)
    if (a(4) /= 4 .or. a(1) /= 1 .or. a(2) /= 10 * rank + 2) call wrong("a large count of a section")
  end subroutine large

  subroutine strings()
    type(MPI_Info) :: info
    character(len=12) :: value
    character(len=MPI_MAX_OBJECT_NAME) :: name
    integer :: length
    logical :: flag
    call MPI_Info_create(info)
    call MPI_Info_set(info, "key ", "  value ")
    length = 12
    call MPI_Info_get_string(info, "key", length, value, flag)
    if (.not. flag) call wrong("Info_get_string")
    call MPI_Info_delete(info, "key")
    call MPI_Info_free(info)
    if (info /= MPI_INFO_NULL) call wrong("freed info")
    call MPI_Comm_set_name(MPI_COMM_SELF, "mine  ")
    call MPI_Comm_get_name(MPI_COMM_SELF, name, length)
    if (name /= "mine" .or. length /= 4) call wrong("Comm_get_name")
  end subroutine strings

  subroutine collectives()
    integer :: all(ranks), mine, i
    integer, asynchronous :: sum
    type(MPI_Request) :: requests(2)
    logical :: flag
    all = -1
    all(rank + 1) = rank
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INTEGER, MPI_COMM_WORLD)
    if (any(all /= [(i, i = 0, ranks - 1)])) call wrong("Allgather in place")
    if (rank == 0) then
      call MPI_Scatter(all, 1, MPI_INTEGER, MPI_IN_PLACE, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
      mine = 0
    else
      call MPI_Scatter(all, 1, MPI_INTEGER, mine, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
    end if
    if (mine /= rank) call wrong("Scatter in place")
    call MPI_Iallreduce(rank, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(2))
    requests(1) = MPI_REQUEST_NULL
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    if (sum /= ranks * (ranks - 1) / 2) call wrong("Iallreduce")
    call MPI_Testall(2, requests, flag, MPI_STATUSES_IGNORE)
    if (.not. flag) call wrong("Testall")
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine collectives

  subroutine windows()
    type(MPI_Win) :: win
    type(c_ptr) :: base
    integer, pointer :: memory(:)
    integer :: values(6), i, result, one
    integer, asynchronous :: exposed(8)
    call MPI_Win_allocate(24_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
    call c_f_pointer(base, memory, [6])
    memory = -1
    values = [(10 * rank + i, i = 1, 6)]
    call MPI_Win_fence(0, win)
    call MPI_Put(values(1:6:2), 3, MPI_INTEGER, next, 1_MPI_ADDRESS_KIND, 3, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    if (any(memory /= [-1, 10 * before + 1, 10 * before + 3, 10 * before + 5, -1, -1])) call wrong("Put of a section")
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Accumulate(values(6:1:-2), 3, MPI_INTEGER, next, 1_MPI_ADDRESS_KIND, 3, MPI_INTEGER, MPI_SUM, win)
    call MPI_Win_fence(0, win)
    if (any(memory(2:4) /= 20 * before + [7, 7, 7])) call wrong("Accumulate of a section")
    values = 0
    call MPI_Get(values(2:6:2), 3, MPI_INTEGER, next, 1_MPI_ADDRESS_KIND, 3, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    if (any(values /= [0, 20 * rank + 7, 0, 20 * rank + 7, 0, 20 * rank + 7])) call wrong("Get into a section")
    call MPI_Win_free(win)
    if (win /= MPI_WIN_NULL) call wrong("freed window")
    exposed = rank
    one = 1
    call MPI_Win_create(exposed, 32_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win)
    call MPI_Fetch_and_op(one, result, MPI_INTEGER, next, 2_MPI_ADDRESS_KIND, MPI_SUM, win)
    call MPI_Win_unlock(next, win)
    if (result /= next) call wrong("Fetch_and_op")
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_F_sync_reg(exposed)
    call MPI_Win_free(win)
    if (exposed(3) /= rank + 1) call wrong("a window of an array")
  end subroutine windows

  subroutine topologies()
    type(MPI_Comm) :: ring
    integer :: dims(1), coords(1), left, right, received(2)
    logical :: periods(1)
    dims = ranks
    call MPI_Cart_create(MPI_COMM_WORLD, 1, dims, [.true.], .false., ring)
    call MPI_Cart_shift(ring, 0, 1, left, right)
    if (left /= before .or. right /= next) call wrong("Cart_shift")
    call MPI_Cart_get(ring, 1, dims, periods, coords)
    if (dims(1) /= ranks .or. .not. periods(1) .or. coords(1) /= rank) call wrong("Cart_get")
    call MPI_Neighbor_allgather(rank, 1, MPI_INTEGER, received, 1, MPI_INTEGER, ring)
    if (any(received /= [before, next])) call wrong("Neighbor_allgather")
    call MPI_Comm_free(ring)
  end subroutine topologies

  subroutine sizes()
    real(8) :: x(3, 3)
    complex(8) :: z
    integer :: size
    integer(kind=MPI_ADDRESS_KIND) :: first, second
    type(MPI_Datatype) :: matched
    call MPI_Sizeof(x, size)
    if (size /= 8) call wrong("Sizeof an array")
    call MPI_Sizeof(z, size)
    if (size /= 16) call wrong("Sizeof a COMPLEX")
    call MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, matched)
    if (matched == MPI_DATATYPE_NULL) call wrong("Type_match_size")
    call MPI_Get_address(x(1, 1), first)
    call MPI_Get_address(x(2, 3), second)
    if (second - first /= 56 .or. MPI_Aint_diff(second, first) /= 56) call wrong("Get_address")
    if (MPI_Wtime() <= 0d0 .or. MPI_Wtick() <= 0d0) call wrong("Wtime")
  end subroutine sizes

  ! A datatype of addresses, and an attached buffer.
  subroutine buffers()
    integer, asynchronous :: a, b
    character, asynchronous :: room(1000)
    type(c_ptr) :: address
    integer(kind=MPI_ADDRESS_KIND) :: places(2)
    type(MPI_Datatype) :: both
    integer :: received(2), size
    a = rank
    b = rank + 100
    call MPI_Get_address(a, places(1))
    call MPI_Get_address(b, places(2))
    call MPI_Type_create_hindexed(2, [1, 1], places, MPI_INTEGER, both)
    call MPI_Type_commit(both)
    call MPI_F_sync_reg(a)
    call MPI_F_sync_reg(b)
    call MPI_Sendrecv(MPI_BOTTOM, 1, both, next, 1, received, 2, MPI_INTEGER, before, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE)
    if (any(received /= [before, before + 100])) call wrong("MPI_BOTTOM")
    call MPI_Type_free(both)
    call MPI_Buffer_attach(room, 1000)
    call MPI_Bsend(rank, 1, MPI_INTEGER, next, 3, MPI_COMM_WORLD)
    call MPI_Recv(received, 1, MPI_INTEGER, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Buffer_detach(address, size)
    if (received(1) /= before .or. size /= 1000) call wrong("Bsend")
  end subroutine buffers

  subroutine tool()
    integer :: a(6), b(3), i
    type(MPI_Request) :: request
    a = [(10 * rank + i, i = 1, 6)]
    call MPI_Irecv(b, 3, MPI_INTEGER, before, 2, MPI_COMM_WORLD, request)
    call MPI_Ssend(a(1:6:2), 3, MPI_INTEGER, next, 2, MPI_COMM_WORLD)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (any(b /= [(10 * before + i, i = 1, 6, 2)]) .or. seen_sends /= 3) call wrong("a tool")
  end subroutine tool
end program modern
