! A pattern of BT and SP of the NAS Parallel Benchmarks: alternating direction implicit steps on a cube that is cut into
! q**3 cells for q**2 processes. Each process has q cells on a diagonal, so it has one cell in each slab, whatever the
! direction (multi-partition), and no process waits while a line is solved through the cube. Faces are sections of
! arrays. The order of operations is that of one process, so the result is the same to the last bit.
program sp
  use mpi_f08
  implicit none
  integer, parameter :: n = 24, steps = 6
  integer :: rank, size, q, m, mine(2), step
  type(MPI_Comm) :: square
  double precision, dimension(0:n + 1, 0:n + 1, 0:n + 1) :: alone, right, above
  double precision, asynchronous :: together(n, n, n)
  double precision, allocatable, target, asynchronous :: u(:, :, :, :), r(:, :, :, :), c(:, :, :, :)
  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  ! Processes beyond the largest square have no cells.
  q = int(sqrt(size + 0.5))
  m = n / q
  mine = [mod(rank, q), rank / q]
  call MPI_Comm_split(MPI_COMM_WORLD, merge(0, MPI_UNDEFINED, rank < q * q), rank, square)
  if (square /= MPI_COMM_NULL) then
    call solve_together
    call compare
    call MPI_Comm_free(square)
  end if
  call MPI_Finalize()
  print '(a,i0)', 'done ', rank
contains
  ! Which cell of the cube a process's cell is.
  function cell(which) result(at)
    integer, intent(in) :: which
    integer :: at(3)
    at = [mod(mine(1) + which, q), mod(mine(2) + which, q), which]
  end function

  ! The process's cell in a slab.
  integer function in_slab(direction, slab)
    integer, intent(in) :: direction, slab
    in_slab = slab
    if (direction < 3) in_slab = modulo(slab - mine(direction), q)
  end function

  ! Who has the next cell in a direction, or the one before.
  integer function neighbour(direction, sign)
    integer, intent(in) :: direction, sign
    integer :: at(2)
    at = mine
    if (direction == 3) at = at - sign
    if (direction < 3) at(direction) = at(direction) + sign
    at = modulo(at, q)
    neighbour = at(1) + q * at(2)
  end function

  double precision pure function initial(i, j, k)
    integer, intent(in) :: i, j, k
    initial = 1d0 + 1d-1 * mod(i * j + 3 * k, 11)
  end function

  double precision pure function diagonal(i, j, k, direction)
    integer, intent(in) :: i, j, k, direction
    diagonal = 2.5d0 + 1d-1 * mod(3 * i + 5 * j + 7 * k + direction, 4)
  end function

  double precision pure function change(w, e, s, o, d, t, here)
    double precision, intent(in) :: w, e, s, o, d, t, here
    change = 0.4d0 * (((w + e) + (s + o)) + (d + t) - 6d0 * here)
  end function

  ! A plane of a cell, perpendicular to a direction.
  function plane(of, direction, place, which) result(face)
    double precision, intent(in), target :: of(:, :, :, 0:)
    integer, intent(in) :: direction, place, which
    double precision, pointer :: face(:, :)
    integer :: edge
    ! Cells with a halo begin with it.
    edge = (ubound(of, 1) - m) / 2
    select case (direction)
    case (1)
      face => of(place + edge, 1 + edge:m + edge, 1 + edge:m + edge, which)
    case (2)
      face => of(1 + edge:m + edge, place + edge, 1 + edge:m + edge, which)
    case default
      face => of(1 + edge:m + edge, 1 + edge:m + edge, place + edge, which)
    end select
  end function

  subroutine solve_together
    integer :: which, at(3), i, j, k, direction
    allocate (u(0:m + 1, 0:m + 1, 0:m + 1, 0:q - 1), r(m, m, m, 0:q - 1), c(m, m, m, 0:q - 1))
    u = 0
    do which = 0, q - 1
      at = cell(which) * m
      do k = 1, m
        do j = 1, m
          do i = 1, m
            u(i, j, k, which) = initial(at(1) + i, at(2) + j, at(3) + k)
          end do
        end do
      end do
    end do
    do step = 1, steps
      call exchange_faces
      do which = 0, q - 1
        do k = 1, m
          do j = 1, m
            do i = 1, m
              r(i, j, k, which) = change(u(i - 1, j, k, which), u(i + 1, j, k, which), u(i, j - 1, k, which), &
                u(i, j + 1, k, which), u(i, j, k - 1, which), u(i, j, k + 1, which), u(i, j, k, which))
            end do
          end do
        end do
      end do
      do direction = 1, 3
        call eliminate(direction)
        call substitute(direction)
      end do
      u(1:m, 1:m, 1:m, :) = u(1:m, 1:m, 1:m, :) + r
    end do
  end subroutine

  ! Each cell's halo from the cells around it.
  subroutine exchange_faces
    type(MPI_Request) :: requests(12 * q)
    double precision, pointer, asynchronous :: face(:, :)
    integer :: which, at(3), direction, sign, other, count
    count = 0
    do which = 0, q - 1
      at = cell(which)
      do direction = 1, 3
        do sign = -1, 1, 2
          if (at(direction) + sign < 0 .or. at(direction) + sign >= q) cycle
          other = which
          if (direction == 3) other = which + sign
          face => plane(u, direction, merge(0, m + 1, sign < 0), which)
          call MPI_Irecv(face, m * m, MPI_DOUBLE_PRECISION, neighbour(direction, sign), &
            10 * which + 2 * direction + (sign + 1) / 2, square, requests(count + 1))
          face => plane(u, direction, merge(1, m, sign < 0), which)
          call MPI_Isend(face, m * m, MPI_DOUBLE_PRECISION, neighbour(direction, sign), &
            10 * other + 2 * direction + (1 - sign) / 2, square, requests(count + 2))
          count = count + 2
        end do
      end do
    end do
    call MPI_Waitall(count, requests, MPI_STATUSES_IGNORE)
  end subroutine

  ! Forward through the lines of a direction, slab after slab.
  subroutine eliminate(direction)
    integer, intent(in) :: direction
    type(MPI_Request) :: requests(2)
    double precision, pointer, asynchronous :: here(:, :), up(:, :)
    double precision, asynchronous :: before(m, m, 2)
    double precision :: factor(m, m)
    integer :: slab, which, place, at(3)
    requests = MPI_REQUEST_NULL
    before = 0
    do slab = 0, q - 1
      which = in_slab(direction, slab)
      at = cell(which) * m
      if (slab > 0) then
        call MPI_Recv(before(:, :, 1), m * m, MPI_DOUBLE_PRECISION, neighbour(direction, -1), 1, square, &
          MPI_STATUS_IGNORE)
        call MPI_Recv(before(:, :, 2), m * m, MPI_DOUBLE_PRECISION, neighbour(direction, -1), 2, square, &
          MPI_STATUS_IGNORE)
        call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      end if
      do place = 1, m
        up => plane(c, direction, place, which)
        here => plane(r, direction, place, which)
        factor = 1d0 / (diagonals(direction, place, at) + before(:, :, 1))
        up = -factor
        here = (here + before(:, :, 2)) * factor
        before(:, :, 1) = up
        before(:, :, 2) = here
      end do
      if (slab < q - 1) then
        call MPI_Isend(up, m * m, MPI_DOUBLE_PRECISION, neighbour(direction, 1), 1, square, requests(1))
        call MPI_Isend(here, m * m, MPI_DOUBLE_PRECISION, neighbour(direction, 1), 2, square, requests(2))
      end if
    end do
  end subroutine

  ! The diagonals of a plane of a cell that begins behind `at`.
  function diagonals(direction, place, at) result(values)
    integer, intent(in) :: direction, place, at(3)
    double precision :: values(m, m)
    integer :: i, j, point(3)
    do j = 1, m
      do i = 1, m
        point = [i, j, place]
        if (direction == 1) point = [place, i, j]
        if (direction == 2) point = [i, place, j]
        point = point + at
        values(i, j) = diagonal(point(1), point(2), point(3), direction)
      end do
    end do
  end function

  ! And back.
  subroutine substitute(direction)
    integer, intent(in) :: direction
    type(MPI_Request) :: request
    double precision, pointer, asynchronous :: here(:, :), up(:, :)
    double precision, asynchronous :: behind(m, m)
    integer :: slab, which, place
    request = MPI_REQUEST_NULL
    behind = 0
    do slab = q - 1, 0, -1
      which = in_slab(direction, slab)
      if (slab < q - 1) then
        call MPI_Recv(behind, m * m, MPI_DOUBLE_PRECISION, neighbour(direction, 1), 3, square, MPI_STATUS_IGNORE)
        call MPI_Wait(request, MPI_STATUS_IGNORE)
      end if
      do place = m, 1, -1
        up => plane(c, direction, place, which)
        here => plane(r, direction, place, which)
        here = here - up * behind
        behind = here
      end do
      if (slab > 0) call MPI_Isend(here, m * m, MPI_DOUBLE_PRECISION, neighbour(direction, -1), 3, square, request)
    end do
  end subroutine

  ! All cells to rank 0, which computes the whole cube alone.
  subroutine compare
    type(MPI_Request) :: requests(q)
    integer :: which, other, at(3)
    do which = 0, q - 1
      call MPI_Isend(u(1:m, 1:m, 1:m, which), m**3, MPI_DOUBLE_PRECISION, 0, which, square, requests(which + 1))
    end do
    if (rank == 0) then
      do other = 0, q * q - 1
        do which = 0, q - 1
          at = m * [mod(mod(other, q) + which, q), mod(other / q + which, q), which]
          call MPI_Recv(together(at(1) + 1:at(1) + m, at(2) + 1:at(2) + m, at(3) + 1:at(3) + m), m**3, &
            MPI_DOUBLE_PRECISION, other, which, square, MPI_STATUS_IGNORE)
        end do
      end do
      call solve_alone
      if (any(together /= alone(1:n, 1:n, 1:n)) .or. maxval(together) - minval(together) < 0.1d0) then
        print *, 'differences in ', count(together /= alone(1:n, 1:n, 1:n)), ' of ', n**3
        call MPI_Abort(MPI_COMM_WORLD, 3)
      end if
    end if
    call MPI_Waitall(q, requests, MPI_STATUSES_IGNORE)
  end subroutine

  subroutine solve_alone
    integer :: i, j, k, direction, back(3)
    double precision :: factor
    alone = 0
    right = 0
    do k = 1, n
      do j = 1, n
        do i = 1, n
          alone(i, j, k) = initial(i, j, k)
        end do
      end do
    end do
    do step = 1, steps
      do k = 1, n
        do j = 1, n
          do i = 1, n
            right(i, j, k) = change(alone(i - 1, j, k), alone(i + 1, j, k), alone(i, j - 1, k), alone(i, j + 1, k), &
              alone(i, j, k - 1), alone(i, j, k + 1), alone(i, j, k))
          end do
        end do
      end do
      do direction = 1, 3
        above = 0
        back = 0
        back(direction) = 1
        do k = 1, n
          do j = 1, n
            do i = 1, n
              factor = 1d0 / (diagonal(i, j, k, direction) + above(i - back(1), j - back(2), k - back(3)))
              above(i, j, k) = -factor
              right(i, j, k) = (right(i, j, k) + right(i - back(1), j - back(2), k - back(3))) * factor
            end do
          end do
        end do
        do k = n, 1, -1
          do j = n, 1, -1
            do i = n, 1, -1
              right(i, j, k) = right(i, j, k) - above(i, j, k) * right(i + back(1), j + back(2), k + back(3))
            end do
          end do
        end do
      end do
      alone(1:n, 1:n, 1:n) = alone(1:n, 1:n, 1:n) + right(1:n, 1:n, 1:n)
    end do
  end subroutine
end program
