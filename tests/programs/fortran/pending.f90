! Sections of arrays in calls that are pending: reductions, partitions, blocks for each process.
program pending
  use mpi_f08
  implicit none
  integer, parameter :: n = 12
  integer :: rank, ranks, next, before
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = modulo(rank + 1, ranks)
  before = modulo(rank - 1, ranks)
  call reductions()
  call in_place()
  call untouched()
  call scattered()
  call persistent()
  call partitions()
  call blocks()
  call different_types()
  call holes()
  call requests()
  call MPI_Finalize()
  print '(a,i0)', 'done ', rank

contains

  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    print '(a,i0,2a)', 'rank ', rank, ': wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 3)
  end subroutine expect

  ! What rank r contributes.
  elemental integer function of(r, i)
    integer, intent(in) :: r, i
    of = 1000 * (r + 1) + i
  end function of

  integer function summed(low, high, i)
    integer, intent(in) :: low, high, i
    integer :: r
    summed = sum([(of(r, i), r = low, high)])
  end function summed

  subroutine reductions()
    integer, asynchronous :: a(3, n), b(2, 2 * n), c(n)
    integer :: i
    type(MPI_Request) :: request
    a = -5
    a(2, :) = [(of(rank, i), i = 1, n)]
    b = -1
    call MPI_Iallreduce(a(2, :), b(2, 1:2*n:2), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call expect(all(b(2, 1:2*n:2) == [(summed(0, ranks - 1, i), i = 1, n)]), 'Iallreduce')
    call expect(count(b == -1) == 3 * n, 'Iallreduce: what lies between')
    ! Backwards, and only the root has a result.
    b = -1
    call MPI_Ireduce(a(2, n:1:-1), b(1, :), n, MPI_INTEGER, MPI_MAX, ranks - 1, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (rank == ranks - 1) then
      call expect(all(b(1, 1:n) == [(of(ranks - 1, i), i = n, 1, -1)]), 'Ireduce')
      call expect(count(b == -1) == 3 * n, 'Ireduce: what lies behind')
    else
      call expect(all(b == -1), 'Ireduce elsewhere')
    end if
    b = -1
    call MPI_Iscan(a(2, :), b(1, ::2), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call expect(all(b(1, ::2) == [(summed(0, rank, i), i = 1, n)]), 'Iscan')
    b = -1
    call MPI_Iexscan(a(2, :), b(1, ::2), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (rank > 0) call expect(all(b(1, ::2) == [(summed(0, rank - 1, i), i = 1, n)]), 'Iexscan')
    if (rank == 0) call expect(all(b == -1), 'Iexscan at rank 0')
    ! One side is contiguous.
    call MPI_Iallreduce(a(2, :), c, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call expect(all(c == [(summed(0, ranks - 1, i), i = 1, n)]), 'Iallreduce of a section')
    ! Large counts.
    b = -1
    call MPI_Iallreduce(a(2, :), b(1, ::2), int(n, MPI_COUNT_KIND), MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call expect(all(b(1, ::2) == [(summed(0, ranks - 1, i), i = 1, n)]), 'Iallreduce with a large count')
  end subroutine reductions

  subroutine in_place()
    integer, asynchronous :: b(4, 5, 6)
    integer :: i, expected(2, 5, 3)
    logical :: flag
    type(MPI_Request) :: request
    b = -1
    b(1:4:2, :, 6:2:-2) = reshape([(of(rank, i), i = 1, 30)], [2, 5, 3])
    expected = reshape([(summed(0, ranks - 1, i), i = 1, 30)], [2, 5, 3])
    call MPI_Iallreduce(MPI_IN_PLACE, b(1:4:2, :, 6:2:-2), 30, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    do
      call MPI_Test(request, flag, MPI_STATUS_IGNORE)
      if (flag) exit
    end do
    call expect(all(b(1:4:2, :, 6:2:-2) == expected), 'in place')
    call expect(count(b == -1) == 90, 'in place: what lies between')
    b(1:4:2, :, 6:2:-2) = rank
    if (rank == 0) then
      call MPI_Ireduce(MPI_IN_PLACE, b(1:4:2, :, 6:2:-2), 30, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, request)
    else
      call MPI_Ireduce(b(1:4:2, :, 6:2:-2), b, 30, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, request)
    end if
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (rank == 0) call expect(all(b(1:4:2, :, 6:2:-2) == ranks * (ranks - 1) / 2), 'Ireduce in place')
  end subroutine in_place

  ! Elements that the count leaves out belong to the program while the operation is pending.
  subroutine untouched()
    integer, asynchronous :: b(2, n)
    logical :: flag
    type(MPI_Request) :: request, requests(2)
    b = 1
    call MPI_Iallreduce(MPI_IN_PLACE, b(1, :), 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    b(1, 5:) = 77
    b(2, :) = 78
    do
      call MPI_Request_get_status(request, flag, MPI_STATUS_IGNORE)
      if (flag) exit
    end do
    call expect(all(b(1, 1:4) == ranks), 'a complete operation that is not freed')
    b(1, 1) = 79
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call expect(b(1, 1) == 79 .and. all(b(1, 2:4) == ranks), 'written after it was complete')
    call expect(all(b(1, 5:) == 77) .and. all(b(2, :) == 78), 'written while it was pending')
    b = 1
    requests(1) = MPI_REQUEST_NULL
    call MPI_Iallreduce(MPI_IN_PLACE, b(2, :), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call expect(all(b(2, :) == ranks), 'Waitall')
  end subroutine untouched

  subroutine scattered()
    integer, asynchronous :: a(2, 3 * ranks), b(9)
    integer :: counts(ranks), i, first, mine
    type(MPI_Request) :: request
    a = -1
    a(2, :) = [(of(rank, i), i = 1, 3 * ranks)]
    b = -1
    call MPI_Ireduce_scatter_block(a(2, :), b(9:1:-3), 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call expect(all(b(9:1:-3) == [(summed(0, ranks - 1, 3 * rank + i), i = 1, 3)]), 'Ireduce_scatter_block')
    call expect(count(b == -1) == 6, 'Ireduce_scatter_block: what lies between')
    counts = 3
    if (ranks > 1) counts([1, ranks]) = [2, 4]
    b = -1
    call MPI_Ireduce_scatter(a(2, :), b(1:9:2), counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    first = sum(counts(1:rank))
    mine = counts(rank + 1)
    call expect(all(b(1:2*mine:2) == [(summed(0, ranks - 1, first + i), i = 1, mine)]), 'Ireduce_scatter')
    a(2, :) = [(of(rank, i), i = 1, 3 * ranks)]
    call MPI_Ireduce_scatter_block(MPI_IN_PLACE, a(2, :), 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call expect(all(a(2, 1:3) == [(summed(0, ranks - 1, 3 * rank + i), i = 1, 3)]), 'in place, scattered')
    call expect(all(a(1, :) == -1), 'in place, scattered: what lies between')
  end subroutine scattered

  subroutine persistent()
    integer, asynchronous :: a(2, n), b(2, n), c(2, n)
    integer :: i, round
    type(MPI_Request) :: requests(3)
    call MPI_Allreduce_init(a(1, :), b(1, :), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1))
    call MPI_Scan_init(a(2, :), b(2, n:1:-1), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, requests(2))
    call MPI_Reduce_scatter_block_init(MPI_IN_PLACE, c(2, :), n / ranks, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, &
      MPI_INFO_NULL, requests(3))
    do round = 1, 3
      a(1, :) = [(of(rank, round * i), i = 1, n)]
      a(2, :) = [(of(rank, round + i), i = 1, n)]
      c(1, :) = -1
      c(2, :) = [(of(rank, round + i), i = 1, n)]
      b = -1
      call MPI_Startall(3, requests)
      call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE)
      call expect(all(b(1, :) == [(summed(0, ranks - 1, round * i), i = 1, n)]), 'Allreduce_init')
      call expect(all(b(2, n:1:-1) == [(summed(0, rank, round + i), i = 1, n)]), 'Scan_init')
      call expect(all(c(2, 1:n/ranks) == [(of(ranks - 1, round + i + rank * (n / ranks)), i = 1, n / ranks)]), &
        'Reduce_scatter_block_init')
      call expect(all(c(1, :) == -1), 'Reduce_scatter_block_init: what lies between')
    end do
    do i = 1, 3
      call MPI_Request_free(requests(i))
    end do
    call expect(all(requests == MPI_REQUEST_NULL), 'freed')
  end subroutine persistent

  ! Each partition has 6 elements of a section of rows of 4.
  subroutine partitions()
    integer, parameter :: parts = 4
    integer, asynchronous :: a(8, 6), b(4, 12)
    integer :: i, round, sent(24), received(24)
    logical :: flag
    type(MPI_Request) :: requests(2)
    call MPI_Psend_init(a(1:8:2, :), parts, 6_MPI_COUNT_KIND, MPI_INTEGER, next, 3, MPI_COMM_WORLD, &
      MPI_INFO_NULL, requests(1))
    call MPI_Precv_init(b(:, 12:2:-2), parts, 6_MPI_COUNT_KIND, MPI_INTEGER, before, 3, MPI_COMM_WORLD, &
      MPI_INFO_NULL, requests(2))
    do round = 1, 2
      a = -1
      b = -2
      sent = [(of(rank, 100 * round + i), i = 1, 24)]
      received = [(of(before, 100 * round + i), i = 1, 24)]
      call MPI_Startall(2, requests)
      ! Each is written just before it is ready, the last one first.
      do i = parts - 1, 0, -1
        call fill(a, 6 * i + 1, sent(6 * i + 1:6 * i + 6))
        call MPI_Pready(i, requests(1))
      end do
      do
        call MPI_Parrived(requests(2), 2, flag)
        if (flag) exit
      end do
      call expect(all(pick(b(:, 12:2:-2), 13, 18) == received(13:18)), 'a partition that has arrived')
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      call expect(all(pick(b(:, 12:2:-2), 1, 24) == received), 'all partitions')
      call expect(count(b == -2) == 24, 'partitions: what lies between')
    end do
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
  end subroutine partitions

  subroutine fill(a, first, values)
    integer, intent(inout) :: a(8, 6)
    integer, intent(in) :: first, values(:)
    integer :: i
    do i = 1, size(values)
      a(2 * mod(first + i - 2, 4) + 1, (first + i - 2) / 4 + 1) = values(i)
    end do
  end subroutine fill

  function pick(b, low, high) result(values)
    integer, intent(in) :: b(4, 6), low, high
    integer :: values(high - low + 1), all(24)
    all = reshape(b, [24])
    values = all(low:high)
  end function pick

  ! A block for each process in arrays with two steps.
  subroutine blocks()
    integer, asynchronous :: a(4, 2 * ranks), b(6, 2 * ranks), few(4)
    integer :: i, j, expected(2, 2 * ranks), counts(ranks), places(ranks)
    type(MPI_Request) :: request
    a = -1
    a(1:4:2, :) = reshape([(of(rank, i), i = 1, 4 * ranks)], [2, 2 * ranks])
    few = [(of(rank, i), i = 1, 4)]
    b = -1
    call MPI_Iallgather(few, 4, MPI_INTEGER, b(2:6:3, :), 4, MPI_INTEGER, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    expected = reshape([((of(j, i), i = 1, 4), j = 0, ranks - 1)], [2, 2 * ranks])
    call expect(all(b(2:6:3, :) == expected), 'Iallgather')
    call expect(count(b == -1) == 8 * ranks, 'Iallgather: what lies between')
    b = -1
    call MPI_Ialltoall(a(1:4:2, :), 4, MPI_INTEGER, b(2:6:3, :), 4, MPI_INTEGER, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    expected = reshape([((of(j, 4 * rank + i), i = 1, 4), j = 0, ranks - 1)], [2, 2 * ranks])
    call expect(all(b(2:6:3, :) == expected), 'Ialltoall')
    a = -1
    call MPI_Iscatter(b(2:6:3, :), 4, MPI_INTEGER, a(1:4:2, 1:3:2), 4, MPI_INTEGER, 0, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call expect(all(reshape(a(1:4:2, 1:3:2), [4]) == [(of(rank, i), i = 1, 4)]), 'Iscatter')
    ! Blocks in reverse order, and one element between them that is the program's.
    counts = 3
    places = [(4 * (ranks - i), i = 1, ranks)]
    b = -1
    call MPI_Igatherv(few, 3, MPI_INTEGER, b(2:6:3, :), counts, places, MPI_INTEGER, 0, MPI_COMM_WORLD, request)
    b(5, 2:2*ranks:2) = -7
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (rank == 0) then
      expected = reshape([((merge(-7, of(j, i), i == 4), i = 1, 4), j = ranks - 1, 0, -1)], [2, 2 * ranks])
      call expect(all(b(2:6:3, :) == expected), 'Igatherv')
    end if
    call MPI_Allgather_init(few, 4, MPI_INTEGER, b(2:6:3, :), 4, MPI_INTEGER, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    do j = 1, 2
      b = -1
      few = [(of(rank, j + i), i = 1, 4)]
      call MPI_Start(request)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      call expect(b(2, 2 * ranks) == of(ranks - 1, j + 3) .and. b(5, 2 * ranks) == of(ranks - 1, j + 4), &
        'Allgather_init')
    end do
    call MPI_Request_free(request)
  end subroutine blocks

  ! A datatype for each process.
  subroutine different_types()
    integer, asynchronous :: a(3, 2 * ranks), b(2, 4 * ranks)
    integer :: i, counts(ranks), places(ranks)
    type(MPI_Datatype) :: types(ranks)
    type(MPI_Request) :: request
    a = -1
    a(2, :) = [(of(rank, i), i = 1, 2 * ranks)]
    b = -1
    counts = 2
    types = MPI_INTEGER
    places = [(8 * (i - 1), i = 1, ranks)]
    call MPI_Ialltoallw(a(2, :), counts, places, types, b(2, ::2), counts, places, types, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call expect(all(b(2, 1::4) == [(of(i, 2 * rank + 1), i = 0, ranks - 1)]), 'Ialltoallw')
    call expect(all(b(2, 3::4) == [(of(i, 2 * rank + 2), i = 0, ranks - 1)]), 'Ialltoallw, second')
    call expect(count(b == -1) == 6 * ranks, 'Ialltoallw: what lies between')
  end subroutine different_types

  ! A datatype with holes that are wider than an element.
  subroutine holes()
    integer, asynchronous :: a(2, n), b(3, n)
    integer :: i
    type(MPI_Datatype) :: vector
    type(MPI_Request) :: requests(2)
    call MPI_Type_vector(3, 1, 4, MPI_INTEGER, vector)
    call MPI_Type_commit(vector)
    a = -1
    a(2, :) = [(of(rank, i), i = 1, n)]
    b = -1
    call MPI_Irecv(b(3, :), 1, vector, before, 6, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(a(2, :), 1, vector, next, 6, MPI_COMM_WORLD, requests(2))
    call MPI_Type_free(vector)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call expect(all(b(3, 1:9:4) == [(of(before, i), i = 1, 9, 4)]), 'holes')
    call expect(count(b == -1) == 3 * n - 3, 'holes: what lies between')
  end subroutine holes

  ! Cancelled, and refused while under way.
  subroutine requests()
    integer, asynchronous :: b(2, n)
    integer :: ierr, class
    logical :: flag
    type(MPI_Datatype) :: vector
    type(MPI_Request) :: request
    type(MPI_Status) :: status
    call MPI_Type_vector(3, 1, 4, MPI_INTEGER, vector)
    call MPI_Type_commit(vector)
    b = -1
    call MPI_Irecv(b(2, :), 1, vector, before, 99, MPI_COMM_WORLD, request)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPI_Request_free(request, ierr)
    call MPI_Error_class(ierr, class)
    call expect(class == MPI_ERR_REQUEST .and. request /= MPI_REQUEST_NULL, 'it is under way')
    call MPI_Cancel(request)
    call MPI_Wait(request, status)
    call MPI_Test_cancelled(status, flag)
    call expect(flag .and. all(b == -1), 'cancelled')
    ! A call that fails leaves nothing behind.
    call MPI_Iallreduce(MPI_IN_PLACE, b(2, :), n, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD, request, ierr)
    call MPI_Error_class(ierr, class)
    call expect(class == MPI_ERR_TYPE .and. all(b == -1), 'an error')
    call MPI_Type_free(vector)
    call failed()
  end subroutine requests

  ! A call that fails before it ends anything leaves indices as they are. One that ends requests numbers them from 1.
  subroutine failed()
    type(MPI_Request) :: list(2), wrong(1)
    integer :: indices(2), outcount, index, ierr, class, b(2, 2), sent(2)
    wrong(1)%MPI_VAL = 12345
    outcount = 2
    indices = [3, 4]
    index = 5
    call MPI_Waitsome(1, wrong, outcount, indices, MPI_STATUSES_IGNORE, ierr)
    call expect(ierr /= MPI_SUCCESS .and. all(indices == [3, 4]), 'indices of a call that failed')
    call MPI_Waitany(1, wrong, index, MPI_STATUS_IGNORE, ierr)
    call expect(ierr /= MPI_SUCCESS .and. (index == 5 .or. index == MPI_UNDEFINED), 'index of a call that failed')
    sent = rank
    call MPI_Irecv(b(:, 1), 1, MPI_INTEGER, before, 7, MPI_COMM_WORLD, list(1))
    call MPI_Irecv(b(:, 2), 1, MPI_INTEGER, before, 8, MPI_COMM_WORLD, list(2))
    call MPI_Send(sent, 2, MPI_INTEGER, next, 8, MPI_COMM_WORLD)
    call MPI_Waitsome(2, list, outcount, indices, MPI_STATUSES_IGNORE, ierr)
    call MPI_Error_class(ierr, class)
    call expect(class == MPI_ERR_IN_STATUS .and. outcount == 1 .and. indices(1) == 2, 'the request that failed')
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Send(sent, 1, MPI_INTEGER, next, 7, MPI_COMM_WORLD)
    call MPI_Waitany(2, list, index, MPI_STATUS_IGNORE, ierr)
    call expect(ierr == MPI_SUCCESS .and. index == 1, 'the other one')
  end subroutine failed
end program pending
