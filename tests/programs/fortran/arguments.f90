! Each kind of argument of `use mpi`: scalars, handles, logicals, statuses, indices, displacements, and arrays of them.
program arguments
  use mpi
  implicit none
  integer :: rank, size, ierr, right, left, i, n, index, outcount, position
  integer :: comm, newcomm, group, part, newtype, contents, win, message, info, request, requests(4)
  integer :: status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 4), indices(4), values(8)
  integer, asynchronous :: got(8) ! MPI writes to it in calls that do not name it
  integer :: dims(2), coords(2), ranges(3, 1), types(2), lengths(2), combiner, integers(4), typelist(4)
  integer(kind=MPI_ADDRESS_KIND) :: bytes, lb, extent, places(2), addresses(4)
  integer(kind=MPI_COUNT_KIND) :: elements
  logical :: flag, periods(2), remain(2)
  double precision :: reals(4), before
  character(len=64) :: packed
  type :: pair
    sequence
    integer :: number, unused
    double precision :: value
  end type
  type(pair), volatile :: record

  call MPI_Init_thread(MPI_THREAD_FUNNELED, n, ierr)
  call expect(n >= MPI_THREAD_FUNNELED, 'thread level')
  call MPI_Initialized(flag, ierr)
  call expect(flag, 'initialized')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  right = mod(rank + 1, size)
  left = mod(rank + size - 1, size)
  before = MPI_Wtime()
  call expect(MPI_Wtime() >= before .and. MPI_Wtick() > 0, 'clock')

  ! Messages and statuses.
  values = [(rank * 10 + i, i = 1, 8)]
  call MPI_Sendrecv(values, 8, MPI_INTEGER, right, 7, got, 8, MPI_INTEGER, left, 7, MPI_COMM_WORLD, status, ierr)
  call MPI_Get_count(status, MPI_INTEGER, n, ierr)
  call expect(n == 8 .and. got(3) == left * 10 + 3, 'sendrecv')
  call expect(status(MPI_SOURCE) == left .and. status(MPI_TAG) == 7, 'status')
  call MPI_Isend(values, 4, MPI_INTEGER, right, 8, MPI_COMM_WORLD, request, ierr)
  call MPI_Probe(left, 8, MPI_COMM_WORLD, status, ierr)
  call MPI_Mprobe(left, 8, MPI_COMM_WORLD, message, status, ierr)
  call MPI_Mrecv(got, 4, MPI_INTEGER, message, MPI_STATUS_IGNORE, ierr)
  call expect(message == MPI_MESSAGE_NULL .and. got(4) == left * 10 + 4, 'mrecv')
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call expect(request == MPI_REQUEST_NULL, 'request null')
  call MPI_Get_elements_x(status, MPI_INTEGER, elements, ierr)
  call expect(elements == 4, 'elements')

  ! Lists of requests; Fortran counts from 1.
  do i = 1, 4
    call MPI_Irecv(got(i), 1, MPI_INTEGER, left, 20 + i, MPI_COMM_WORLD, requests(i), ierr)
  end do
  call MPI_Send(values(3), 1, MPI_INTEGER, right, 23, MPI_COMM_WORLD, ierr)
  call MPI_Waitany(4, requests, index, status, ierr)
  call expect(index == 3 .and. got(3) == left * 10 + 3, 'waitany')
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_Testany(4, requests, index, flag, MPI_STATUS_IGNORE, ierr)
  call expect(.not. flag, 'testany')
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_Send(values(2), 1, MPI_INTEGER, right, 22, MPI_COMM_WORLD, ierr)
  call MPI_Waitsome(4, requests, outcount, indices, statuses, ierr)
  call expect(outcount == 1 .and. indices(1) == 2 .and. statuses(MPI_TAG, 1) == 22, 'waitsome')
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_Send(values(1), 1, MPI_INTEGER, right, 21, MPI_COMM_WORLD, ierr)
  call MPI_Send(values(4), 1, MPI_INTEGER, right, 24, MPI_COMM_WORLD, ierr)
  call MPI_Waitall(4, requests, statuses, ierr)
  call expect(statuses(MPI_TAG, 1) == 21 .and. statuses(MPI_TAG, 4) == 24, 'waitall')
  call MPI_Testsome(4, requests, outcount, indices, MPI_STATUSES_IGNORE, ierr)
  call expect(outcount == MPI_UNDEFINED, 'testsome')
  call MPI_Testall(4, requests, flag, MPI_STATUSES_IGNORE, ierr)
  call expect(flag, 'testall')
  call MPI_Recv_init(got, 1, MPI_INTEGER, left, 30, MPI_COMM_WORLD, requests(1), ierr)
  call MPI_Send_init(values, 1, MPI_INTEGER, right, 30, MPI_COMM_WORLD, requests(2), ierr)
  call MPI_Startall(2, requests, ierr)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  call expect(got(1) == left * 10 + 1, 'persistent')
  call MPI_Request_free(requests(1), ierr)
  call MPI_Request_free(requests(2), ierr)
  call expect(requests(2) == MPI_REQUEST_NULL, 'request free')
  call MPI_Irecv(got, 1, MPI_INTEGER, left, 31, MPI_COMM_WORLD, request, ierr)
  call MPI_Cancel(request, ierr)
  call MPI_Wait(request, status, ierr)
  call MPI_Test_cancelled(status, flag, ierr)
  call expect(flag, 'cancelled')

  ! Collectives with arrays of counts, and of datatypes.
  call MPI_Allgatherv(values, 1, MPI_INTEGER, got, [(1, i = 1, size)], [(size - i, i = 1, size)], MPI_INTEGER, &
    MPI_COMM_WORLD, ierr)
  call expect(got(1) == (size - 1) * 10 + 1 .and. got(size) == 1, 'allgatherv')
  call MPI_Alltoallw(values, [(1, i = 1, size)], [(4 * (i - 1), i = 1, size)], [(MPI_INTEGER, i = 1, size)], &
    got, [(1, i = 1, size)], [(4 * (i - 1), i = 1, size)], [(MPI_INTEGER, i = 1, size)], MPI_COMM_WORLD, ierr)
  call expect(all(got(:size) == [(10 * (i - 1) + rank + 1, i = 1, size)]), 'alltoallw')
  reals = rank + 0.5d0
  call MPI_Iallreduce(MPI_IN_PLACE, reals, 4, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call expect(all(reals == size - 0.5d0), 'iallreduce')
  flag = rank == 0
  call MPI_Allreduce(MPI_IN_PLACE, flag, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, ierr)
  call expect(flag, 'logical or')
  values(:2) = [rank, -rank]
  call MPI_Reduce(values, got, 1, MPI_2INTEGER, MPI_MAXLOC, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0) call expect(got(1) == size - 1 .and. got(2) == 1 - size, 'maxloc')

  ! Communicators, groups, topologies.
  call MPI_Comm_group(MPI_COMM_WORLD, group, ierr)
  ranges(:, 1) = [0, size - 1, 2]
  call MPI_Group_range_incl(group, 1, ranges, part, ierr)
  call MPI_Group_size(part, n, ierr)
  call expect(n == (size + 1) / 2, 'range incl')
  call MPI_Group_translate_ranks(part, 1, [0], group, indices, ierr)
  call expect(indices(1) == 0, 'translate ranks')
  call MPI_Comm_create(MPI_COMM_WORLD, part, newcomm, ierr)
  call expect((newcomm == MPI_COMM_NULL) .eqv. (mod(rank, 2) == 1), 'comm create')
  if (newcomm /= MPI_COMM_NULL) call MPI_Comm_free(newcomm, ierr)
  call MPI_Group_free(part, ierr)
  call expect(part == MPI_GROUP_NULL, 'group free')
  call MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_SELF, n, ierr)
  call expect(n == merge(MPI_CONGRUENT, MPI_UNEQUAL, size == 1), 'compare')
  dims = 0
  call MPI_Dims_create(size, 2, dims, ierr)
  call expect(product(dims) == size, 'dims')
  periods = [.true., .false.]
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .false., comm, ierr)
  dims = 0
  periods = [.false., .true.]
  call MPI_Cart_get(comm, 2, dims, periods, coords, ierr)
  call expect(periods(1) .and. .not. periods(2) .and. product(dims) == size, 'cart get')
  call MPI_Cart_rank(comm, coords, n, ierr)
  call expect(n == rank, 'cart rank')
  call MPI_Cart_shift(comm, 0, 1, i, n, ierr)
  call expect(n >= 0, 'cart shift')
  remain = [.true., .false.]
  call MPI_Cart_sub(comm, remain, newcomm, ierr)
  call MPI_Comm_size(newcomm, n, ierr)
  call expect(n == dims(1), 'cart sub')
  call MPI_Comm_free(newcomm, ierr)
  call MPI_Comm_free(comm, ierr)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [left], MPI_UNWEIGHTED, 1, [right], MPI_UNWEIGHTED, &
    MPI_INFO_NULL, .false., comm, ierr)
  call MPI_Dist_graph_neighbors_count(comm, i, n, flag, ierr)
  call expect(i == 1 .and. n == 1 .and. .not. flag, 'unweighted')
  call MPI_Comm_free(comm, ierr)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, got, MPI_WEIGHTS_EMPTY, 0, got, MPI_WEIGHTS_EMPTY, &
    MPI_INFO_NULL, .false., comm, ierr)
  call MPI_Dist_graph_neighbors_count(comm, i, n, flag, ierr)
  call expect(i == 0 .and. n == 0 .and. flag, 'weights empty')
  call MPI_Comm_free(comm, ierr)
  call MPI_Graph_create(MPI_COMM_WORLD, size, [(i, i = 1, size)], [(mod(i, size), i = 1, size)], .false., comm, ierr)
  call MPI_Graph_neighbors(comm, rank, 1, indices, ierr)
  call expect(indices(1) == right, 'graph')
  call MPI_Comm_free(comm, ierr)

  ! Datatypes, addresses, MPI_BOTTOM.
  call MPI_Get_address(record, places(1), ierr)
  call MPI_Get_address(record%value, places(2), ierr)
  call expect(MPI_Aint_diff(places(2), places(1)) == 8, 'aint diff')
  types = [MPI_INTEGER, MPI_DOUBLE_PRECISION]
  lengths = 1
  call MPI_Type_create_struct(2, lengths, places, types, newtype, ierr)
  call MPI_Type_commit(newtype, ierr)
  record%number = rank
  record%value = rank * 0.5d0
  call MPI_Bcast(MPI_BOTTOM, 1, newtype, size - 1, MPI_COMM_WORLD, ierr)
  call expect(record%number == size - 1 .and. record%value == (size - 1) * 0.5d0, 'bottom')
  call MPI_Type_get_envelope(newtype, i, n, index, combiner, ierr)
  call expect(i == 3 .and. n == 2 .and. index == 2 .and. combiner == MPI_COMBINER_STRUCT, 'envelope')
  call MPI_Type_get_contents(newtype, 3, 2, 2, integers, addresses, typelist, ierr)
  call expect(integers(1) == 2 .and. addresses(2) == places(2) .and. typelist(1) == MPI_INTEGER, 'contents')
  call MPI_Type_free(newtype, ierr)
  call expect(newtype == MPI_DATATYPE_NULL, 'type free')
  bytes = 16
  call MPI_Type_create_hvector(3, 1, bytes, MPI_INTEGER, newtype, ierr)
  call MPI_Type_get_extent(newtype, lb, extent, ierr)
  call expect(lb == 0 .and. extent == 36, 'hvector')
  call MPI_Type_create_resized(newtype, lb, 2 * extent, contents, ierr)
  call MPI_Type_get_extent(contents, lb, extent, ierr)
  call expect(extent == 72, 'resized')
  call MPI_Type_free(newtype, ierr)
  call MPI_Type_free(contents, ierr)
  call MPI_Type_create_subarray(2, [4, 2], [2, 1], [1, 1], MPI_ORDER_FORTRAN, MPI_INTEGER, newtype, ierr)
  call MPI_Type_commit(newtype, ierr)
  values = [(i, i = 1, 8)]
  position = 0
  call MPI_Pack(values, 1, newtype, packed, 64, position, MPI_COMM_WORLD, ierr)
  call expect(position == 8, 'pack')
  position = 0
  call MPI_Unpack(packed, 64, position, got, 2, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call expect(got(1) == 6 .and. got(2) == 7, 'subarray')
  call MPI_Type_free(newtype, ierr)
  call MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, newtype, ierr)
  call expect(newtype == MPI_REAL8, 'match size')
  call MPI_Type_create_f90_integer(9, newtype, ierr)
  call MPI_Type_size(newtype, n, ierr)
  call expect(n == 4, 'f90 integer')

  ! One-sided.
  bytes = 32
  got = -1
  call MPI_Win_create(got, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  bytes = 2
  values = rank
  call MPI_Put(values, 1, MPI_INTEGER, right, bytes, 1, MPI_INTEGER, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  call expect(got(3) == left .and. got(2) == -1, 'put')
  call MPI_Win_free(win, ierr)
  call expect(win == MPI_WIN_NULL, 'win free')
  call MPI_Info_create(info, ierr)
  call MPI_Info_free(info, ierr)
  call expect(info == MPI_INFO_NULL, 'info free')

  ! Errors.
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
  call MPI_Send(values, 1, MPI_INTEGER, size, 0, MPI_COMM_WORLD, ierr)
  call MPI_Error_class(ierr, n, i)
  call expect(n == MPI_ERR_RANK, 'error class')
  call MPI_Finalize(ierr)
  call MPI_Finalized(flag, ierr)
  call expect(flag, 'finalized')
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
