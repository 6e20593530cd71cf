! MG of the NAS Parallel Benchmarks, class S: four V-cycles on 32**3 points with periodic borders, in slabs whose halos
! are exchanged. Levels with less than two planes per rank are held and computed by every rank. Ranks are a power of 2.
program mg
  use mpi
  implicit none
  integer, parameter :: top = 5, n = 2**top
  double precision, parameter :: residual_weights(0:3) = [-8d0 / 3, 0d0, 1d0 / 6, 1d0 / 12]
  double precision, parameter :: smoother_weights(0:3) = [-3d0 / 8, 1d0 / 32, -1d0 / 64, 0d0]
  double precision, parameter :: coarser_weights(0:3) = [0.5d0, 0.25d0, 0.125d0, 0.0625d0]
  type :: grid
    integer :: points, first, planes
    logical :: is_shared
    double precision, allocatable :: u(:, :, :), r(:, :, :)
  end type
  type(grid) :: levels(top)
  double precision, allocatable :: v(:, :, :)
  double precision :: norm
  integer :: rank, size, ierr, level, cycle_number
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  do level = 1, top
    levels(level)%points = 2**level
    levels(level)%is_shared = 2**level < 2 * size
    levels(level)%planes = merge(2**level, 2**level / size, levels(level)%is_shared)
    levels(level)%first = merge(0, levels(level)%planes * rank, levels(level)%is_shared)
    allocate (levels(level)%u(-1:2**level, -1:2**level, -1:levels(level)%planes))
    allocate (levels(level)%r, source=levels(level)%u)
    levels(level)%u = 0
    levels(level)%r = 0
  end do
  call charges
  call residual(top, v)
  do cycle_number = 1, 4
    do level = top, 2, -1
      call restrict(level)
    end do
    levels(1)%u = 0
    call smooth(1)
    do level = 2, top
      if (level < top) levels(level)%u = 0
      call prolong(level)
      if (level < top) then
        call residual(level, levels(level)%r)
      else
        call residual(level, v)
      end if
      call smooth(level)
    end do
    call residual(top, v)
  end do
  norm = sum(levels(top)%r(0:n - 1, 0:n - 1, 0:levels(top)%planes - 1)**2)
  call MPI_Allreduce(MPI_IN_PLACE, norm, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  call verify(sqrt(norm / dble(n)**3), 0.5307707005734d-4, 1d-8)
  call MPI_Finalize(ierr)
  print '(a,i0)', 'done ', rank
contains
  include 'common.inc'

  ! v is 1 where the ten largest numbers of a random field are, -1 where the ten smallest are.
  subroutine charges
    double precision, allocatable :: field(:, :, :)
    integer :: i, j, k, place(3), first
    integer(8) :: seed
    allocate (v, mold=levels(top)%u)
    allocate (field(0:n - 1, 0:n - 1, 0:n - 1))
    seed = 314159265_8
    do k = 0, n - 1
      do j = 0, n - 1
        do i = 0, n - 1
          field(i, j, k) = random(seed)
        end do
      end do
    end do
    v = 0
    first = levels(top)%first
    do i = 1, 10
      place = maxloc(field) - 1
      field(place(1), place(2), place(3)) = 0.5d0
      if (is_mine(place(3))) v(place(1), place(2), place(3) - first) = 1
      place = minloc(field) - 1
      field(place(1), place(2), place(3)) = 0.5d0
      if (is_mine(place(3))) v(place(1), place(2), place(3) - first) = -1
    end do
  end subroutine

  logical function is_mine(plane)
    integer, intent(in) :: plane
    is_mine = plane >= levels(top)%first .and. plane < levels(top)%first + levels(top)%planes
  end function

  ! Periodic borders: in two dimensions within the rank, in the third with the neighbours.
  subroutine borders(level, array)
    integer, intent(in) :: level
    double precision, intent(inout) :: array(-1:, -1:, -1:)
    integer :: m, d, count, below, above, error
    m = levels(level)%points
    d = levels(level)%planes
    array(-1, :, :) = array(m - 1, :, :)
    array(m, :, :) = array(0, :, :)
    array(:, -1, :) = array(:, m - 1, :)
    array(:, m, :) = array(:, 0, :)
    if (levels(level)%is_shared) then
      array(:, :, -1) = array(:, :, d - 1)
      array(:, :, d) = array(:, :, 0)
      return
    end if
    count = (m + 2)**2
    below = mod(rank + size - 1, size)
    above = mod(rank + 1, size)
    call MPI_Sendrecv(array(-1, -1, 0), count, MPI_DOUBLE_PRECISION, below, 1, array(-1, -1, d), count, &
      MPI_DOUBLE_PRECISION, above, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    call MPI_Sendrecv(array(-1, -1, d - 1), count, MPI_DOUBLE_PRECISION, above, 2, array(-1, -1, -1), count, &
      MPI_DOUBLE_PRECISION, below, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  end subroutine

  ! The sum of the 27 points around one, with a weight for each distance.
  double precision pure function stencil(around, weights)
    double precision, intent(in) :: around(-1:1, -1:1, -1:1), weights(0:3)
    double precision :: sums(0:3)
    integer :: i, j, k, distance
    sums = 0
    do k = -1, 1
      do j = -1, 1
        do i = -1, 1
          distance = abs(i) + abs(j) + abs(k)
          sums(distance) = sums(distance) + around(i, j, k)
        end do
      end do
    end do
    stencil = dot_product(weights, sums)
  end function

  ! r = right - A u
  subroutine residual(level, right)
    integer, intent(in) :: level
    double precision, intent(in) :: right(-1:, -1:, -1:)
    double precision, allocatable :: left(:, :, :)
    integer :: i, j, k
    allocate (left(-1:levels(level)%points, -1:levels(level)%points, -1:levels(level)%planes))
    left = 0
    associate (here => levels(level))
      do k = 0, here%planes - 1
        do j = 0, here%points - 1
          do i = 0, here%points - 1
            left(i, j, k) = right(i, j, k) - stencil(here%u(i - 1:i + 1, j - 1:j + 1, k - 1:k + 1), residual_weights)
          end do
        end do
      end do
    end associate
    call borders(level, left)
    call move_alloc(left, levels(level)%r)
  end subroutine

  ! u = u + S r
  subroutine smooth(level)
    integer, intent(in) :: level
    integer :: i, j, k
    associate (here => levels(level))
      do k = 0, here%planes - 1
        do j = 0, here%points - 1
          do i = 0, here%points - 1
            here%u(i, j, k) = here%u(i, j, k) + stencil(here%r(i - 1:i + 1, j - 1:j + 1, k - 1:k + 1), smoother_weights)
          end do
        end do
      end do
    end associate
    call borders(level, levels(level)%u)
  end subroutine

  ! The residual of the next coarser level; its point j lies on point 2 j + 1.
  subroutine restrict(level)
    integer, intent(in) :: level
    double precision, allocatable :: part(:, :, :)
    integer :: i, j, k, m, d, error
    m = levels(level - 1)%points
    d = levels(level)%planes / 2
    allocate (part(0:m - 1, 0:m - 1, 0:d - 1))
    do k = 0, d - 1
      do j = 0, m - 1
        do i = 0, m - 1
          part(i, j, k) = stencil(levels(level)%r(2 * i:2 * i + 2, 2 * j:2 * j + 2, 2 * k:2 * k + 2), coarser_weights)
        end do
      end do
    end do
    if (levels(level - 1)%is_shared .and. .not. levels(level)%is_shared) then
      block
        double precision :: whole(0:m - 1, 0:m - 1, 0:m - 1)
        call MPI_Allgather(part, m * m * d, MPI_DOUBLE_PRECISION, whole, m * m * d, MPI_DOUBLE_PRECISION, &
          MPI_COMM_WORLD, error)
        levels(level - 1)%r(0:m - 1, 0:m - 1, 0:m - 1) = whole
      end block
    else
      levels(level - 1)%r(0:m - 1, 0:m - 1, 0:d - 1) = part
    end if
    call borders(level - 1, levels(level - 1)%r)
  end subroutine

  ! The correction of the next coarser level, between its points by means.
  subroutine prolong(level)
    integer, intent(in) :: level
    integer :: i, j, k, a, b, c, offset
    ! The coarser level may begin before this rank's planes.
    offset = levels(level)%first / 2 - levels(level - 1)%first
    associate (here => levels(level), coarse => levels(level - 1)%u)
      do k = 0, here%planes - 1
        c = (k + 1) / 2 - 1 + offset
        do j = 0, here%points - 1
          b = (j + 1) / 2 - 1
          do i = 0, here%points - 1
            a = (i + 1) / 2 - 1
            here%u(i, j, k) = here%u(i, j, k) + sum(coarse(a:a + 1 - mod(i, 2), b:b + 1 - mod(j, 2), &
              c:c + 1 - mod(k, 2))) / ((2 - mod(i, 2)) * (2 - mod(j, 2)) * (2 - mod(k, 2)))
          end do
        end do
      end do
    end associate
    call borders(level, levels(level)%u)
  end subroutine
end program
