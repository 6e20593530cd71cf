! Sections of arrays where MPICH does not follow the standard: a count of a part of a section, several items of a
! datatype in an element and several elements in an item, and blocks in collective calls. And its mpi_f08 counts
! requests from 0 and takes MPI_UNWEIGHTED for an array.
program parts
  use mpi_f08
  implicit none
  integer :: rank, ranks, next, before
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = modulo(rank + 1, ranks)
  before = modulo(rank - 1, ranks)
  call part_of_section()
  call several_per_element()
  call texts()
  call several_per_item()
  call blocks()
  call vectors()
  call blocks_later()
  call reductions()
  call packed()
  call refused()
  call indices()
  call unweighted()
  call nothing()
  call MPI_Finalize()
  print '(a,i0)', 'done ', rank

contains

  subroutine wrong(what)
    character(len=*), intent(in) :: what
    print '(a,i0,2a)', 'rank ', rank, ': wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 3)
  end subroutine wrong

  ! A count smaller than the section.
  subroutine part_of_section()
    integer :: a(4, 4, 4), b(40), i
    integer, allocatable :: flat(:)
    a = reshape([(i + 1000 * rank, i = 1, 64)], [4, 4, 4])
    do i = 0, 8
      b = -1
      call MPI_Sendrecv(a(1:4:2, 1:4:3, 1:2), i, MPI_INTEGER, next, 2, &
                        b(2:40:2), i, MPI_INTEGER, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      flat = reshape(a(1:4:2, 1:4:3, 1:2), [8]) - 1000 * rank + 1000 * before
      if (any(b(2:2*i:2) /= flat(:i))) call wrong("a part of a section")
      if (count(b == -1) /= 40 - i) call wrong("a part of a section: the rest")
    end do
  end subroutine part_of_section

  ! Elements of two REALs, with a datatype of one.
  subroutine several_per_element()
    complex :: a(9), b(9)
    integer :: i
    a = [(cmplx(i, rank), i = 1, 9)]
    b = -1
    call MPI_Sendrecv(a(1:9:2), 10, MPI_REAL, next, 4, b(9:1:-2), 10, MPI_REAL, before, 4, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    if (any(b(9:1:-2) /= [(cmplx(i, before), i = 1, 9, 2)])) call wrong("several items in an element")
  end subroutine several_per_element

  subroutine texts()
    character(len=3) :: a(4), b(4)
    a = ["abc", "def", "ghi", "jkl"]
    b = "---"
    call MPI_Sendrecv(a(1:4:2), 6, MPI_CHARACTER, next, 4, b(4:1:-2), 6, MPI_CHARACTER, before, 4, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    if (b(4) /= "abc" .or. b(2) /= "ghi" .or. b(1) /= "---" .or. b(3) /= "---") call wrong("texts")
  end subroutine texts

  ! Items of several elements: COMPLEX of REALs, and a derived datatype with a hole, which blocking calls copy.
  subroutine several_per_item()
    real, asynchronous :: a(24), b(24)
    type(MPI_Datatype) :: three, holed
    type(MPI_Request) :: requests(2)
    integer :: i
    a = [(rank + i / 100., i = 1, 24)]
    b = -1
    call MPI_Sendrecv(a(1:24:3), 4, MPI_COMPLEX, next, 4, b(24:1:-3), 4, MPI_COMPLEX, before, 4, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    if (any(b(24:1:-3) /= [(before + i / 100., i = 1, 24, 3)])) call wrong("COMPLEX of REALs")
    call MPI_Type_vector(2, 1, 2, MPI_REAL, holed)
    call MPI_Type_commit(holed)
    b = -1
    if (rank == 0) then
      call MPI_Send(a(1:24:2), 2, holed, next, 4, MPI_COMM_WORLD)
      call MPI_Recv(b(1:24:2), 2, holed, before, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    else
      call MPI_Recv(b(1:24:2), 2, holed, before, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call MPI_Send(a(1:24:2), 2, holed, next, 4, MPI_COMM_WORLD)
    end if
    if (any(b([1, 5, 7, 11]) /= [(before + i / 100., i = 1, 7, 4), (before + i / 100., i = 7, 11, 4)])) &
      call wrong("a datatype with a hole")
    if (count(b == -1) /= 20) call wrong("a datatype with a hole: the rest")
    call MPI_Type_contiguous(3, MPI_REAL, three)
    call MPI_Type_commit(three)
    b = -1
    call MPI_Irecv(b(2:24:4), 2, three, before, 4, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(a(1:24:4), 2, three, next, 4, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    if (any(b(2:24:4) /= [(before + i / 100., i = 1, 24, 4)])) call wrong("three elements in an item")
    call MPI_Type_free(three)
    call MPI_Type_free(holed)
  end subroutine several_per_item

  subroutine blocks()
    integer :: a(60), b(60), i, j
    a = [(1000 * rank + i, i = 1, 60)]
    b = -1
    call MPI_Gather(a(1:12:4), 3, MPI_INTEGER, b(1:6*ranks:2), 3, MPI_INTEGER, 0, MPI_COMM_WORLD)
    if (rank == 0) then
      if (any(b(1:6*ranks:2) /= [((1000 * j + i, i = 1, 12, 4), j = 0, ranks - 1)])) call wrong("Gather")
    else if (any(b /= -1)) then
      call wrong("Gather at others")
    end if
    b = -1
    call MPI_Allgather(a(12:1:-4), 3, MPI_INTEGER, b(6*ranks:1:-2), 3, MPI_INTEGER, MPI_COMM_WORLD)
    if (any(b(6*ranks:1:-2) /= [((1000 * j + i, i = 12, 1, -4), j = 0, ranks - 1)])) call wrong("Allgather")
    b = -1
    b(1:6*ranks:2) = -2
    b(6*rank+1:6*rank+6:2) = rank
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b(1:6*ranks:2), 3, MPI_INTEGER, MPI_COMM_WORLD)
    if (any(b(1:6*ranks:2) /= [((j, i = 1, 3), j = 0, ranks - 1)])) call wrong("Allgather in place")
    if (any(b(2:6*ranks:2) /= -1)) call wrong("Allgather in place: what lies between")
    b = -1
    call MPI_Scatter(a(1:6*ranks:3), 2, MPI_INTEGER, b(2:4:2), 2, MPI_INTEGER, 0, MPI_COMM_WORLD)
    if (any(b(2:4:2) /= [6 * rank + 1, 6 * rank + 4])) call wrong("Scatter")
    b = -1
    call MPI_Alltoall(a(1:4*ranks:2), 2, MPI_INTEGER, b(4*ranks:1:-2), 2, MPI_INTEGER, MPI_COMM_WORLD)
    if (any(b(4*ranks:1:-2) /= [((1000 * j + 4 * rank + i, i = 1, 3, 2), j = 0, ranks - 1)])) call wrong("Alltoall")
  end subroutine blocks

  subroutine vectors()
    integer :: a(60), b(60), i, j, counts(ranks), places(ranks)
    counts = [(j, j = 1, ranks)]
    places = [(j * (j - 1) / 2, j = 1, ranks)]
    a = [(1000 * rank + i, i = 1, 60)]
    b = -1
    call MPI_Gatherv(a(2:60:3), rank + 1, MPI_INTEGER, b(60:1:-2), counts, places, MPI_INTEGER, 0, MPI_COMM_WORLD)
    if (rank == 0) then
      if (any(b(60:60-(ranks*(ranks+1)-2):-2) /= [((1000 * j + 3 * i - 1, i = 1, j + 1), j = 0, ranks - 1)])) &
        call wrong("Gatherv")
    end if
  end subroutine vectors

  ! Nonblocking and persistent.
  subroutine blocks_later()
    integer, asynchronous :: a(60), b(60), c(4, 15)
    integer :: i, j, counts(ranks), places(ranks)
    type(MPI_Request) :: request
    counts = [(j, j = 1, ranks)]
    places = [(j * (j - 1) / 2, j = 1, ranks)]
    a = [(1000 * rank + i, i = 1, 60)]
    b = -1
    call MPI_Iallgather(a(12:1:-4), 3, MPI_INTEGER, b(2:6*ranks:2), 3, MPI_INTEGER, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (any(b(2:6*ranks:2) /= [((1000 * j + i, i = 12, 1, -4), j = 0, ranks - 1)])) call wrong("Iallgather")
    if (any(b(1:59:2) /= -1)) call wrong("Iallgather: what lies between")
    c = -1
    call MPI_Ialltoall(a(1:4*ranks:2), 2, MPI_INTEGER, c(3, :), 2, MPI_INTEGER, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (any(c(3, :2*ranks) /= [((1000 * j + 4 * rank + i, i = 1, 3, 2), j = 0, ranks - 1)])) call wrong("Ialltoall")
    if (count(c /= -1) /= 2 * ranks) call wrong("Ialltoall: what lies between")
    b = -1
    call MPI_Igatherv(a(2:60:3), rank + 1, MPI_INTEGER, b(60:1:-2), counts, places, MPI_INTEGER, 0, &
                      MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (rank == 0) then
      if (any(b(60:60-(ranks*(ranks+1)-2):-2) /= [((1000 * j + 3 * i - 1, i = 1, j + 1), j = 0, ranks - 1)])) &
        call wrong("Igatherv")
    end if
    b = -1
    call MPI_Scatter_init(a(60:61-4*ranks:-2), 2, MPI_INTEGER, b(4:1:-3), 2, MPI_INTEGER, 0, MPI_COMM_WORLD, &
                          MPI_INFO_NULL, request)
    do i = 1, 2
      call MPI_Start(request)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      if (b(4) /= 60 - 4 * rank .or. b(1) /= 58 - 4 * rank) call wrong("Scatter_init")
    end do
    call MPI_Request_free(request)
  end subroutine blocks_later

  subroutine reductions()
    integer :: a(20), b(20), i
    a = [(rank + i, i = 1, 20)]
    b = -1
    call MPI_Allreduce(a(1:20:2), b(20:2:-2), 10, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    if (any(b(20:2:-2) /= [(ranks * i + ranks * (ranks - 1) / 2, i = 1, 20, 2)])) call wrong("Allreduce")
    if (any(b(1:19:2) /= -1)) call wrong("Allreduce: what lies between")
    call MPI_Allreduce(MPI_IN_PLACE, a(20:1:-3), 7, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
    if (any(a(20:1:-3) /= [(ranks - 1 + i, i = 20, 1, -3)])) call wrong("Allreduce in place")
    if (a(19) /= rank + 19) call wrong("Allreduce in place: what lies between")
    b = 0
    call MPI_Exscan(a(1:3:2), b(1:3:2), 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    if (rank > 0 .and. b(2) /= 0) call wrong("Exscan")
    call MPI_Reduce_local(a(1:3:2), a(5:9:4), 2, MPI_INTEGER, MPI_SUM)
    if (a(9) /= a(3) + rank + 9) call wrong("Reduce_local")
  end subroutine reductions

  subroutine packed()
    integer :: a(20), b(20), i, place
    character :: room(400)
    a = [(rank + i, i = 1, 20)]
    b = -1
    place = 0
    call MPI_Pack(a(1:20:4), 5, MPI_INTEGER, room(2:400:2), 199, place, MPI_COMM_WORLD)
    if (place /= 20) call wrong("Pack")
    place = 0
    call MPI_Unpack(room(2:400:2), 199, place, b(20:4:-4), 5, MPI_INTEGER, MPI_COMM_WORLD)
    if (any(b(20:4:-4) /= a(1:20:4))) call wrong("Unpack")
  end subroutine packed

  ! What can neither wait nor be a datatype, and has no request that a copy could live as long as, is an error.
  subroutine refused()
    integer, asynchronous :: a(20), b(20)
    integer :: error, class
    type(MPI_Datatype) :: vector
    type(MPI_Win) :: win
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    a = 1
    call MPI_Type_vector(3, 1, 4, MPI_INTEGER, vector)
    call MPI_Type_commit(vector)
    call MPI_Win_create(b, 80_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Put(a(1:20:2), 1, vector, rank, 0_MPI_ADDRESS_KIND, 3, MPI_INTEGER, win, error)
    call MPI_Error_class(error, class)
    if (class /= MPI_ERR_UNSUPPORTED_OPERATION) call wrong("refused")
    call MPI_Win_free(win)
    call MPI_Type_free(vector)
  end subroutine refused

  subroutine indices()
    type(MPI_Request) :: requests(3)
    integer :: index, indices_done(3), done, value
    logical :: flag
    requests = MPI_REQUEST_NULL
    call MPI_Irecv(value, 1, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Testany(3, requests, index, flag, MPI_STATUS_IGNORE)
    if (flag) call wrong("Testany")
    call MPI_Send(rank, 1, MPI_INTEGER, rank, 1, MPI_COMM_WORLD)
    call MPI_Waitany(3, requests, index, MPI_STATUS_IGNORE)
    if (index /= 2 .or. value /= rank) call wrong("Waitany")
    call MPI_Waitany(3, requests, index, MPI_STATUS_IGNORE)
    if (index /= MPI_UNDEFINED) call wrong("Waitany of none")
    call MPI_Isend(rank, 1, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD, requests(3))
    call MPI_Waitsome(3, requests, done, indices_done, MPI_STATUSES_IGNORE)
    if (done /= 1 .or. indices_done(1) /= 3) call wrong("Waitsome")
  end subroutine indices

  subroutine unweighted()
    type(MPI_Comm) :: graph
    integer :: sources(2), targets(2), weights(2), in, out
    logical :: weighted
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [before], MPI_UNWEIGHTED, 1, [next], MPI_UNWEIGHTED, &
                                        MPI_INFO_NULL, .false., graph)
    call MPI_Dist_graph_neighbors_count(graph, in, out, weighted)
    if (in /= 1 .or. out /= 1 .or. weighted) call wrong("Dist_graph_neighbors_count")
    call MPI_Dist_graph_neighbors(graph, 1, sources, weights, 1, targets, MPI_UNWEIGHTED)
    if (sources(1) /= before .or. targets(1) /= next) call wrong("Dist_graph_neighbors")
    call MPI_Comm_free(graph)
  end subroutine unweighted

  ! Sections without elements, and an array that only the root allocates.
  subroutine nothing()
    integer, allocatable :: all(:), none(:), table(:, :)
    integer :: a(9, 9), i
    allocate(none(9:2), table(4, 9:2))
    a = rank
    call MPI_Sendrecv(a(1:9:2, 5:1), 0, MPI_INTEGER, next, 2, none, 0, MPI_INTEGER, before, 2, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Allreduce(table(1:4:2, :), table(4:1:-2, :), 0, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    if (rank == 0) allocate(all(ranks))
    call MPI_Gather(rank, 1, MPI_INTEGER, all, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
    if (rank == 0) then
      if (any(all /= [(i, i = 0, ranks - 1)])) call wrong("Gather into what the root has")
    end if
  end subroutine nothing
end program parts
