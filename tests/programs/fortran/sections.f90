! Sections of arrays as choice buffers, in every kind of call.
program sections
  use mpi_f08
  implicit none
  integer :: rank, ranks, next, before
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = modulo(rank + 1, ranks)
  before = modulo(rank - 1, ranks)
  if (.not. MPI_SUBARRAYS_SUPPORTED) call wrong("MPI_SUBARRAYS_SUPPORTED")
  call strided()
  call reversed()
  call planes()
  call cubes()
  call empty()
  call assumed_size(20)
  call nonblocking()
  call persistent()
  call pointers()
  call MPI_Finalize()
  print '(a,i0)', 'done ', rank

contains

  subroutine wrong(what)
    character(len=*), intent(in) :: what
    print '(a,i0,2a)', 'rank ', rank, ': wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 3)
  end subroutine wrong

  subroutine strided()
    integer :: a(20), b(20), i
    type(MPI_Status) :: status
    integer :: count
    a = [(100 * rank + i, i = 1, 20)]
    b = -1
    call MPI_Sendrecv(a(2:20:3), 7, MPI_INTEGER, next, 5, &
                      b(1:19:3), 7, MPI_INTEGER, before, 5, MPI_COMM_WORLD, status)
    if (any(b(1:19:3) /= [(100 * before + i, i = 2, 20, 3)])) call wrong("strided")
    if (count_other(b, -1) /= 13) call wrong("strided: what lies between")
    call MPI_Get_count(status, MPI_INTEGER, count)
    if (count /= 7) call wrong("count of a section")
    if (status%MPI_SOURCE /= before .or. status%MPI_TAG /= 5) call wrong("status")
  end subroutine strided

  integer function count_other(values, value)
    integer, intent(in) :: values(:), value
    count_other = count(values == value)
  end function count_other

  subroutine reversed()
    real(8) :: a(10), b(10)
    integer :: i
    a = [(rank + i / 100d0, i = 1, 10)]
    b = 0
    call MPI_Sendrecv(a(10:1:-1), 10, MPI_DOUBLE_PRECISION, next, 6, &
                      b, 10, MPI_DOUBLE_PRECISION, before, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    if (any(b /= [(before + i / 100d0, i = 10, 1, -1)])) call wrong("reversed in a send")
    b = 0
    call MPI_Sendrecv(a, 10, MPI_DOUBLE_PRECISION, next, 6, &
                      b(10:1:-1), 10, MPI_DOUBLE_PRECISION, before, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    if (any(b(10:1:-1) /= [(before + i / 100d0, i = 1, 10)])) call wrong("reversed in a receive")
  end subroutine reversed

  subroutine planes()
    integer :: a(6, 8), b(8, 6), i, j
    a = reshape([((1000 * rank + 10 * j + i, i = 1, 6), j = 1, 8)], [6, 8])
    b = -1
    call MPI_Sendrecv(a(3, :), 8, MPI_INTEGER, next, 1, b(:, 2), 8, MPI_INTEGER, before, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    if (any(b(:, 2) /= [(1000 * before + 10 * j + 3, j = 1, 8)])) call wrong("a row")
    b = -1
    call MPI_Sendrecv(a(2:6:2, 1:8:3), 9, MPI_INTEGER, next, 1, b(8:1:-3, 4:6), 9, MPI_INTEGER, before, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    if (any(b(8:1:-3, 4:6) /= reshape([((1000 * before + 10 * j + i, i = 2, 6, 2), j = 1, 8, 3)], [3, 3]))) &
      call wrong("two strides")
    if (count(b == -1) /= 39) call wrong("two strides: what lies between")
  end subroutine planes

  subroutine cubes()
    integer :: a(4, 5, 6), b(4, 5, 6), i
    a = reshape([(i + 1000 * rank, i = 1, 120)], [4, 5, 6])
    b = -1
    call MPI_Sendrecv(a(2:3, 5:1:-2, 1:6:2), 18, MPI_INTEGER, next, 2, &
                      b(1:4:3, 1:3, 6:4:-1), 18, MPI_INTEGER, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    a = reshape([(i + 1000 * before, i = 1, 120)], [4, 5, 6])
    if (any(b(1:4:3, 1:3, 6:4:-1) /= a(2:3, 5:1:-2, 1:6:2))) call wrong("a cube")
    if (count(b == -1) /= 102) call wrong("a cube: what lies between")
  end subroutine cubes

  subroutine empty()
    integer :: a(5), b(5)
    integer, allocatable :: none(:)
    a = rank
    b = -1
    allocate(none(0))
    call MPI_Sendrecv(a(3:1), 0, MPI_INTEGER, next, 2, b(5:2), 0, MPI_INTEGER, before, 2, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(none, 0, MPI_INTEGER, next, 2, none(::2), 0, MPI_INTEGER, before, 2, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    if (any(b /= -1)) call wrong("empty sections")
  end subroutine empty

  subroutine assumed_size(n)
    integer, intent(in) :: n
    integer :: a(n), b(n), i
    a = [(i + 10 * rank, i = 1, n)]
    b = -1
    call through(a, b, n)
    if (any(b(1:n:2) /= [(i + 10 * before, i = 1, n, 2)])) call wrong("a section of an assumed-size array")
    if (any(b(2:n:2) /= [(i + 10 * before, i = 1, n / 2)])) call wrong("an assumed-size array")
  end subroutine assumed_size

  subroutine through(a, b, n)
    integer, intent(in) :: n
    integer, intent(in) :: a(*)
    integer, intent(inout) :: b(*)
    integer :: i, half(n / 2)
    call MPI_Sendrecv(a, n / 2, MPI_INTEGER, next, 3, half, n / 2, MPI_INTEGER, before, 3, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    do i = 1, n / 2
      b(2 * i) = half(i)
    end do
    call MPI_Sendrecv(a(1:n:2), n / 2, MPI_INTEGER, next, 3, b(1:n:2), n / 2, MPI_INTEGER, before, 3, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine through

  subroutine nonblocking()
    integer, asynchronous :: a(64), b(64)
    integer :: i
    type(MPI_Request) :: requests(4)
    type(MPI_Status) :: statuses(4)
    a = [(1000 * rank + i, i = 1, 64)]
    b = -1
    call MPI_Irecv(b(1:64:4), 16, MPI_INTEGER, before, 7, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(b(64:2:-2), 30, MPI_INTEGER, before, 8, MPI_COMM_WORLD, requests(2))
    call MPI_Isend(a(1:64:4), 16, MPI_INTEGER, next, 7, MPI_COMM_WORLD, requests(3))
    call MPI_Issend(a(2:64:2), 30, MPI_INTEGER, next, 8, MPI_COMM_WORLD, requests(4))
    call MPI_Waitall(4, requests, statuses)
    if (any(requests /= MPI_REQUEST_NULL)) call wrong("requests")
    if (statuses(1)%MPI_TAG /= 7 .or. statuses(2)%MPI_TAG /= 8) call wrong("statuses")
    if (any(b(1:64:4) /= [(1000 * before + i, i = 1, 64, 4)])) call wrong("Irecv into a section")
    if (any(b(64:6:-2) /= [(1000 * before + i, i = 2, 60, 2)])) call wrong("Irecv into a reversed section")
    a = 0
    if (rank == 0) a = [(i, i = 1, 64)]
    call MPI_Ibcast(a(1:63:2), 32, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(1))
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    if (any(a(1:63:2) /= [(i, i = 1, 63, 2)])) call wrong("Ibcast of a section")
    if (rank /= 0 .and. any(a(2:64:2) /= 0)) call wrong("Ibcast: what lies between")
  end subroutine nonblocking

  subroutine persistent()
    integer, asynchronous :: a(12), b(12)
    integer :: i, round
    type(MPI_Request) :: requests(2)
    call MPI_Send_init(a(1:12:3), 4, MPI_INTEGER, next, 9, MPI_COMM_WORLD, requests(1))
    call MPI_Recv_init(b(12:1:-3), 4, MPI_INTEGER, before, 9, MPI_COMM_WORLD, requests(2))
    do round = 1, 3
      a = [(1000 * rank + 100 * round + i, i = 1, 12)]
      b = -1
      call MPI_Startall(2, requests)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      if (any(b(12:1:-3) /= [(1000 * before + 100 * round + i, i = 1, 12, 3)])) call wrong("persistent")
    end do
    do i = 1, 2
      call MPI_Request_free(requests(i))
    end do
  end subroutine persistent

  subroutine pointers()
    integer, target :: a(30), b(30)
    integer, pointer :: p(:), q(:)
    integer :: i
    a = [(1000 * rank + i, i = 1, 30)]
    b = -1
    p => a(1:30:5)
    q => b(30:1:-5)
    call MPI_Sendrecv(p, 6, MPI_INTEGER, next, 4, q, 6, MPI_INTEGER, before, 4, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    if (any(q /= [(1000 * before + i, i = 1, 30, 5)])) call wrong("pointers to sections")
    call shaped(p, q(::2))
    if (any(q(::2) /= [(1000 * before + i, i = 1, 15, 5)])) call wrong("assumed shapes")
  end subroutine pointers

  subroutine shaped(p, q)
    integer, intent(in) :: p(:)
    integer, intent(inout) :: q(:)
    call MPI_Sendrecv(p, 3, MPI_INTEGER, next, 4, q, 3, MPI_INTEGER, before, 4, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine shaped
end program sections
