! A pattern of LU of the NAS Parallel Benchmarks: sweeps of symmetric successive over-relaxation through a grid that
! is cut in two dimensions; plane after plane waits for the west and the south and goes on to the east and the north,
! and back. The order of operations is that of one process, so the result is the same to the last bit.
program lu
  implicit none
  include 'mpif.h'
  integer, parameter :: n = 24, planes = 12, sweeps = 30
  integer :: rank, size, ierr, i, j, k, sweep, dims(2), coords(2), cart, west, east, south, north, column
  integer :: x0, x1, y0, y1, wide, sizes(2), parts(2), offsets(2), block
  logical :: periods(2)
  double precision :: alone(0:n + 1, 0:n + 1, planes), together(n, n, planes)
  double precision, allocatable :: u(:, :, :), inner(:, :, :)
  call MPI_Init(ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  dims = 0
  periods = .false.
  call MPI_Dims_create(size, 2, dims, ierr)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .true., cart, ierr)
  call MPI_Comm_rank(cart, rank, ierr)
  call MPI_Cart_coords(cart, rank, 2, coords, ierr)
  call MPI_Cart_shift(cart, 0, 1, west, east, ierr)
  call MPI_Cart_shift(cart, 1, 1, south, north, ierr)
  call range(coords(1), dims(1), x0, x1)
  call range(coords(2), dims(2), y0, y1)
  allocate (u(x0 - 1:x1 + 1, y0 - 1:y1 + 1, planes))
  wide = x1 - x0 + 1
  call MPI_Type_vector(y1 - y0 + 1, 1, wide + 2, MPI_DOUBLE_PRECISION, column, ierr)
  call MPI_Type_commit(column, ierr)
  u = 0
  alone = 0
  do sweep = 1, sweeps
    call halo
    do k = 1, planes
      call MPI_Recv(u(x0 - 1, y0, k), 1, column, west, k, cart, MPI_STATUS_IGNORE, ierr)
      call MPI_Recv(u(x0, y0 - 1, k), wide, MPI_DOUBLE_PRECISION, south, k, cart, MPI_STATUS_IGNORE, ierr)
      do j = y0, y1
        do i = x0, x1
          u(i, j, k) = relaxed(u(i - 1, j, k), u(i + 1, j, k), u(i, j - 1, k), u(i, j + 1, k), u(i, j, k), i, j, k)
        end do
      end do
      call MPI_Send(u(x1, y0, k), 1, column, east, k, cart, ierr)
      call MPI_Send(u(x0, y1, k), wide, MPI_DOUBLE_PRECISION, north, k, cart, ierr)
    end do
    call halo
    do k = planes, 1, -1
      call MPI_Recv(u(x1 + 1, y0, k), 1, column, east, k, cart, MPI_STATUS_IGNORE, ierr)
      call MPI_Recv(u(x0, y1 + 1, k), wide, MPI_DOUBLE_PRECISION, north, k, cart, MPI_STATUS_IGNORE, ierr)
      do j = y1, y0, -1
        do i = x1, x0, -1
          u(i, j, k) = relaxed(u(i - 1, j, k), u(i + 1, j, k), u(i, j - 1, k), u(i, j + 1, k), u(i, j, k), i, j, k)
        end do
      end do
      call MPI_Send(u(x0, y0, k), 1, column, west, k, cart, ierr)
      call MPI_Send(u(x0, y0, k), wide, MPI_DOUBLE_PRECISION, south, k, cart, ierr)
    end do
    do k = 1, planes
      do j = 1, n
        do i = 1, n
          alone(i, j, k) = relaxed(alone(i - 1, j, k), alone(i + 1, j, k), alone(i, j - 1, k), alone(i, j + 1, k), &
            alone(i, j, k), i, j, k)
        end do
      end do
    end do
    do k = planes, 1, -1
      do j = n, 1, -1
        do i = n, 1, -1
          alone(i, j, k) = relaxed(alone(i - 1, j, k), alone(i + 1, j, k), alone(i, j - 1, k), alone(i, j + 1, k), &
            alone(i, j, k), i, j, k)
        end do
      end do
    end do
  end do
  call collect
  if (rank == 0) then
    if (any(together /= alone(1:n, 1:n, :)) .or. maxval(together) < 1) then
      print *, 'differences in ', count(together /= alone(1:n, 1:n, :)), ' of ', n * n * planes
      call MPI_Abort(MPI_COMM_WORLD, 3, ierr)
    end if
  end if
  call MPI_Type_free(column, ierr)
  call MPI_Finalize(ierr)
  print '(a,i0)', 'done ', rank
contains
  subroutine range(coord, parts, from, to)
    integer, intent(in) :: coord, parts
    integer, intent(out) :: from, to
    from = n * coord / parts + 1
    to = n * (coord + 1) / parts
  end subroutine

  double precision function relaxed(w, e, s, o, here, i, j, k)
    double precision, intent(in) :: w, e, s, o, here
    integer, intent(in) :: i, j, k
    relaxed = here + 1.2d0 * (0.25d0 * (w + e + s + o + 1d-2 * mod(i * j + k, 7)) - here)
  end function

  ! What the other sides have from the sweep before.
  subroutine halo
    integer :: error
    do k = 1, planes
      call MPI_Sendrecv(u(x0, y0, k), 1, column, west, 100, u(x1 + 1, y0, k), 1, column, east, 100, cart, &
        MPI_STATUS_IGNORE, error)
      call MPI_Sendrecv(u(x1, y0, k), 1, column, east, 101, u(x0 - 1, y0, k), 1, column, west, 101, cart, &
        MPI_STATUS_IGNORE, error)
      call MPI_Sendrecv(u(x0, y0, k), wide, MPI_DOUBLE_PRECISION, south, 102, u(x0, y1 + 1, k), wide, &
        MPI_DOUBLE_PRECISION, north, 102, cart, MPI_STATUS_IGNORE, error)
      call MPI_Sendrecv(u(x0, y1, k), wide, MPI_DOUBLE_PRECISION, north, 103, u(x0, y0 - 1, k), wide, &
        MPI_DOUBLE_PRECISION, south, 103, cart, MPI_STATUS_IGNORE, error)
    end do
  end subroutine

  ! All blocks to rank 0, as subarrays of planes.
  subroutine collect
    integer :: other, at(2), error, requests(size), a0, a1, b0, b1, whole
    allocate (inner(x0:x1, y0:y1, planes))
    inner = u(x0:x1, y0:y1, :)
    call MPI_Isend(inner, wide * (y1 - y0 + 1) * planes, MPI_DOUBLE_PRECISION, 0, 9, cart, requests(1), error)
    if (rank == 0) then
      do other = 0, size - 1
        call MPI_Cart_coords(cart, other, 2, at, error)
        call range(at(1), dims(1), a0, a1)
        call range(at(2), dims(2), b0, b1)
        sizes = [n, n]
        parts = [a1 - a0 + 1, b1 - b0 + 1]
        offsets = [a0 - 1, b0 - 1]
        call MPI_Type_create_subarray(2, sizes, parts, offsets, MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, block, error)
        call MPI_Type_contiguous(planes, block, whole, error)
        call MPI_Type_commit(whole, error)
        call MPI_Recv(together, 1, whole, other, 9, cart, MPI_STATUS_IGNORE, error)
        call MPI_Type_free(whole, error)
        call MPI_Type_free(block, error)
      end do
    end if
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
  end subroutine
end program
