! What is Open MPI's own in `use mpi`: handles that are numbers here and addresses in C, arrays of them, and statuses.
module conversions
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    type(c_ptr) function comm_f2c(comm) bind(C, name="MPI_Comm_f2c")
      import :: c_int, c_ptr
      integer(c_int), value :: comm
    end function
    integer(c_int) function comm_c2f(comm) bind(C, name="MPI_Comm_c2f")
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
    end function
    type(c_ptr) function type_f2c(datatype) bind(C, name="MPI_Type_f2c")
      import :: c_int, c_ptr
      integer(c_int), value :: datatype
    end function
    integer(c_int) function type_c2f(datatype) bind(C, name="MPI_Type_c2f")
      import :: c_int, c_ptr
      type(c_ptr), value :: datatype
    end function
    integer(c_int) function c_rank(comm, rank) bind(C, name="MPI_Comm_rank")
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int) :: rank
    end function
    integer(c_int) function c_get(comm, keyval, value, flag) bind(C, name="MPI_Comm_get_attr")
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int), value :: keyval
      type(c_ptr) :: value
      integer(c_int) :: flag
    end function
    integer(c_int) function status_f2c(from, to) bind(C, name="MPI_Status_f2c")
      import :: c_int
      integer(c_int) :: from(*), to(*)
    end function
  end interface
end module

program openmpi
  use mpi
  use conversions
  implicit none
  integer :: rank, size, ierr, i
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  call expect(MPI_STATUS_SIZE == 6, 'six integers of a status')
  call languages
  call requests
  call datatypes
  call alltoallw
  call neighbours
  call graphs
  call old
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

  ! C's handles of Fortran's, and back.
  subroutine languages
    integer :: comm, there, made, keyval
    integer(c_int) :: found
    integer(kind=MPI_ADDRESS_KIND) :: value, extra
    integer(kind=MPI_ADDRESS_KIND), pointer :: seen
    type(c_ptr) :: place
    integer :: predefined(6)
    call expect(comm_c2f(comm_f2c(MPI_COMM_WORLD)) == MPI_COMM_WORLD, 'the world')
    call expect(comm_c2f(comm_f2c(MPI_COMM_NULL)) == MPI_COMM_NULL, 'no communicator')
    ierr = c_rank(comm_f2c(MPI_COMM_WORLD), there)
    call expect(there == rank, 'C knows the world')
    predefined = [MPI_INTEGER, MPI_DOUBLE_PRECISION, MPI_LOGICAL, MPI_2INTEGER, MPI_REAL16, MPI_COUNT]
    do i = 1, 6
      call expect(type_c2f(type_f2c(predefined(i))) == predefined(i), 'predefined datatypes')
    end do
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
    call expect(comm_c2f(comm_f2c(comm)) == comm, 'a communicator')
    there = -1
    ierr = c_rank(comm_f2c(comm), there)
    call expect(there == rank, 'C knows a communicator')
    call MPI_Type_contiguous(3, MPI_INTEGER, made, ierr)
    call expect(type_c2f(type_f2c(made)) == made, 'a datatype')
    call MPI_Type_free(made, ierr)
    call expect(made == MPI_DATATYPE_NULL, 'no datatype')
    extra = 0
    call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, keyval, extra, ierr)
    value = 2_MPI_ADDRESS_KIND**40 + rank
    call MPI_Comm_set_attr(comm, keyval, value, ierr)
    ierr = c_get(comm_f2c(comm), keyval, place, found)
    call c_f_pointer(place, seen)
    call expect(found /= 0 .and. seen == value, 'an attribute')
    ierr = c_get(comm_f2c(MPI_COMM_WORLD), MPI_TAG_UB, place, found)
    call expect(found /= 0, 'a predefined attribute')
    call MPI_Comm_free_keyval(keyval, ierr)
    call MPI_Comm_free(comm, ierr)
    call expect(comm == MPI_COMM_NULL, 'a freed communicator')
  end subroutine

  ! Arrays of requests and of statuses.
  subroutine requests
    integer, parameter :: n = 40
    integer :: handles(n), statuses(MPI_STATUS_SIZE, n), status(MPI_STATUS_SIZE), in(n), out(n), indices(n)
    integer :: c_status(6), count, done, next, before, left
    logical :: flag
    next = mod(rank + 1, size)
    before = mod(rank + size - 1, size)
    do i = 1, n / 2
      call MPI_Irecv(in(i), 1, MPI_INTEGER, before, i, MPI_COMM_WORLD, handles(i), ierr)
    end do
    do i = 1, n / 2
      out(i) = 100 * rank + i
      call MPI_Isend(out(i), 1, MPI_INTEGER, next, i, MPI_COMM_WORLD, handles(n / 2 + i), ierr)
    end do
    call MPI_Waitall(n, handles, statuses, ierr)
    call expect(all(handles == MPI_REQUEST_NULL), 'completed requests')
    call expect(all(in(:n / 2) == [(100 * before + i, i = 1, n / 2)]), 'what came')
    call expect(all(statuses(MPI_SOURCE, :n / 2) == before), 'sources')
    call expect(all(statuses(MPI_TAG, :n / 2) == [(i, i = 1, n / 2)]), 'tags')
    call MPI_Get_count(statuses(:, 5), MPI_INTEGER, count, ierr)
    call expect(count == 1, 'a count')
    c_status = -1
    ierr = status_f2c(statuses(:, 5), c_status)
    call expect(all(c_status == statuses(:, 5)), "C's status")
    ! Persistent requests stay; some complete at a time.
    do i = 1, 4
      call MPI_Recv_init(in(i), 1, MPI_INTEGER, rank, i, MPI_COMM_WORLD, handles(i), ierr)
      call MPI_Send_init(out(i), 1, MPI_INTEGER, rank, i, MPI_COMM_WORLD, handles(4 + i), ierr)
    end do
    call MPI_Startall(8, handles, ierr)
    left = 8
    do while (left > 0)
      call MPI_Waitsome(8, handles, done, indices, MPI_STATUSES_IGNORE, ierr)
      call expect(done > 0 .and. all(indices(:done) >= 1) .and. all(indices(:done) <= 8), 'indices')
      left = left - done
    end do
    call expect(all(handles(:8) /= MPI_REQUEST_NULL), 'persistent requests')
    call MPI_Testall(8, handles, flag, MPI_STATUSES_IGNORE, ierr)
    call expect(flag, 'inactive requests')
    do i = 1, 8
      call MPI_Request_free(handles(i), ierr)
    end do
    call MPI_Waitany(8, handles, indices(1), status, ierr)
    call expect(indices(1) == MPI_UNDEFINED .and. status(MPI_SOURCE) == MPI_ANY_SOURCE, 'nothing to wait for')
    call MPI_Recv(in, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  end subroutine

  ! Arrays of datatypes.
  subroutine datatypes
    integer :: made, types(2), lengths(2), integers(8), seen(4), n, a, d, combiner
    integer(kind=MPI_ADDRESS_KIND) :: places(2), addresses(4), lb, extent
    types = [MPI_INTEGER, MPI_DOUBLE_PRECISION]
    lengths = [2, 1]
    places = [0, 8]
    call MPI_Type_create_struct(2, lengths, places, types, made, ierr)
    call MPI_Type_commit(made, ierr)
    call MPI_Type_get_extent(made, lb, extent, ierr)
    call expect(lb == 0 .and. extent == 16, 'the extent of a structure')
    call MPI_Type_get_envelope(made, n, a, d, combiner, ierr)
    call expect(d == 2 .and. combiner == MPI_COMBINER_STRUCT, 'the envelope of a structure')
    seen = -77
    call MPI_Type_get_contents(made, n, a, 4, integers, addresses, seen, ierr)
    call expect(all(seen(:2) == types) .and. all(seen(3:) == -77), 'the contents of a structure')
    call MPI_Type_free(made, ierr)
  end subroutine

  subroutine alltoallw
    integer :: out(size), in(size), ones(size), places(size), types(size)
    out = [(10 * rank + i, i = 0, size - 1)]
    ones = 1
    places = [(4 * i, i = 0, size - 1)]
    types = MPI_INTEGER
    call MPI_Alltoallw(out, ones, places, types, in, ones, places, types, MPI_COMM_WORLD, ierr)
    call expect(all(in == [(10 * i + rank, i = 0, size - 1)]), 'blocks of datatypes')
    call MPI_Alltoallw(MPI_IN_PLACE, ones, places, [MPI_DATATYPE_NULL], in, ones, places, types, MPI_COMM_WORLD, ierr)
    call expect(all(in == out), 'blocks in place')
  end subroutine

  subroutine neighbours
    integer :: ring, request, out(2), in(2), ones(2), types(2)
    integer(kind=MPI_ADDRESS_KIND) :: places(2)
    call MPI_Cart_create(MPI_COMM_WORLD, 1, [size], [.true.], .false., ring, ierr)
    out = [rank, rank + 100]
    ones = 1
    places = [0, 4]
    types = MPI_INTEGER
    in = -1
    call MPI_Neighbor_alltoallw(out, ones, places, types, in, ones, places, types, ring, ierr)
    call expect(all(mod(in, 100) == [mod(rank + size - 1, size), mod(rank + 1, size)]), 'neighbours')
    in = -1
    call MPI_Ineighbor_alltoallw(out, ones, places, types, in, ones, places, types, ring, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call expect(all(mod(in, 100) == [mod(rank + size - 1, size), mod(rank + 1, size)]), 'neighbours later')
    call MPI_Comm_free(ring, ierr)
  end subroutine

  ! Weights that are not there.
  subroutine graphs
    integer :: graph, from, to, sources(1), targets(1), weights(1), other(1)
    logical :: weighted
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [mod(rank + size - 1, size)], MPI_UNWEIGHTED, &
                                        1, [mod(rank + 1, size)], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., graph, ierr)
    call MPI_Dist_graph_neighbors_count(graph, from, to, weighted, ierr)
    call expect(from == 1 .and. to == 1 .and. .not. weighted, 'a graph without weights')
    call MPI_Dist_graph_neighbors(graph, 1, sources, weights, 1, targets, other, ierr)
    call expect(targets(1) == mod(rank + 1, size), 'a neighbour')
    call MPI_Comm_free(graph, ierr)
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, sources, MPI_WEIGHTS_EMPTY, 0, targets, &
                                        MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, .false., graph, ierr)
    call MPI_Dist_graph_neighbors_count(graph, from, to, weighted, ierr)
    call expect(from == 0 .and. to == 0 .and. weighted, 'a graph of empty weights')
    call MPI_Comm_free(graph, ierr)
  end subroutine

  ! What MPI-3 removed.
  subroutine old
    integer :: made, types(2), lengths(2), places(2), extent
    types = [MPI_INTEGER, MPI_UB]
    lengths = 1
    places = [0, 24]
    call MPI_Type_struct(2, lengths, places, types, made, ierr)
    call MPI_Type_extent(made, extent, ierr)
    call expect(extent == 24, 'an upper bound')
    call MPI_Type_free(made, ierr)
  end subroutine
end program
