! IS of the NAS Parallel Benchmarks, class S: ranks of integer keys, ten times, by buckets that are exchanged with
! MPI_Alltoallv, and the keys in order at the end. Ranks are a power of 2.
program is
  implicit none
  include 'mpif.h'
  integer, parameter :: total = 2**16, top = 2**11, tests = 5
  integer, parameter :: places(tests) = [48427, 17148, 23627, 62548, 4431]
  integer, parameter :: published(tests) = [0, 18, 346, 64917, 65463]
  integer :: rank, size, ierr, i, k, mine, iteration, width, received, expected, below
  integer, allocatable :: keys(:), ordered(:), got(:), to(:), from(:), to_at(:), from_at(:), next(:)
  integer :: counts(0:top - 1), tested(tests), status(MPI_STATUS_SIZE)
  integer(8) :: seed
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  mine = total / size
  width = top / size
  allocate (keys(0:mine - 1), ordered(mine), got(total), to(0:size - 1), from(0:size - 1), to_at(0:size - 1), &
    from_at(0:size - 1), next(0:size - 1))
  seed = ahead(314159265_8, 4_8 * mine * rank)
  do i = 0, mine - 1
    keys(i) = int(top / 4 * (random(seed) + random(seed) + random(seed) + random(seed)))
  end do
  do iteration = 1, 10
    if (rank == 0) then
      keys(iteration) = iteration
      keys(iteration + 10) = top - iteration
    end if
    tested = 0
    do i = 1, tests
      if (places(i) / mine == rank) tested(i) = keys(mod(places(i), mine))
    end do
    call MPI_Allreduce(MPI_IN_PLACE, tested, tests, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call sort
    do i = 1, tests
      if (tested(i) / width /= rank) cycle
      expected = published(i) + merge(iteration, -iteration, i <= 3)
      if (below + sum(counts(rank * width:tested(i) - 1)) /= expected) call wrong(i)
    end do
  end do
  ! My largest key is not above the next rank's smallest, and no key is lost.
  k = merge(got(received), -1, received > 0)
  call MPI_Sendrecv(k, 1, MPI_INTEGER, mod(rank + 1, size), 3, i, 1, MPI_INTEGER, mod(rank + size - 1, size), 3, &
    MPI_COMM_WORLD, status, ierr)
  if (rank > 0 .and. i > got(1)) call wrong(-1)
  if (any(got(:received - 1) > got(2:received))) call wrong(-2)
  call MPI_Allreduce(received, k, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (k /= total) call wrong(-3)
  call MPI_Finalize(ierr)
  print '(a,i0)', 'done ', rank
contains
  include 'common.inc'

  subroutine wrong(what)
    integer, intent(in) :: what
    integer :: error
    print '(a,i0,a,i0,a,i0)', 'rank ', rank, ': test ', what, ' fails in iteration ', iteration
    call MPI_Abort(MPI_COMM_WORLD, 3, error)
  end subroutine

  ! The keys of this rank's range to `got`, in order; how many of each there are to `counts`, how many come before them
  ! to `below`.
  subroutine sort
    integer :: error, owner
    to = 0
    do i = 0, mine - 1
      owner = keys(i) / width
      to(owner) = to(owner) + 1
    end do
    call MPI_Alltoall(to, 1, MPI_INTEGER, from, 1, MPI_INTEGER, MPI_COMM_WORLD, error)
    to_at = [(sum(to(:i - 1)), i = 0, size - 1)]
    from_at = [(sum(from(:i - 1)), i = 0, size - 1)]
    next = to_at
    do i = 0, mine - 1
      owner = keys(i) / width
      next(owner) = next(owner) + 1
      ordered(next(owner)) = keys(i)
    end do
    call MPI_Alltoallv(ordered, to, to_at, MPI_INTEGER, got, from, from_at, MPI_INTEGER, MPI_COMM_WORLD, error)
    received = sum(from)
    below = 0
    call MPI_Exscan(received, below, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    if (rank == 0) below = 0
    counts = 0
    do i = 1, received
      counts(got(i)) = counts(got(i)) + 1
    end do
    k = 0
    do i = rank * width, (rank + 1) * width - 1
      got(k + 1:k + counts(i)) = i
      k = k + counts(i)
    end do
  end subroutine
end program
