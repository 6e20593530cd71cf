! CG of the NAS Parallel Benchmarks, class S: the smallest eigenvalue of a sparse matrix by inverse iteration, each
! step 25 iterations of conjugate gradients. A rank has a block of rows; vectors are exchanged by point-to-point messages.
program cg
  use mpi
  implicit none
  integer, parameter :: n = 1400, nonzeros = 7, steps = 15
  double precision, parameter :: shift = 10, condition = 0.1d0
  integer :: rank, size, ierr, first, last, step
  integer, allocatable :: starts(:), columns(:)
  double precision, allocatable :: values(:)
  double precision :: x(n), z(n), zeta, dots(2)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  first = bound(rank) + 1
  last = bound(rank + 1)
  call make_matrix
  x = 1
  do step = 1, steps
    call solve
    dots = [dot_product(x(first:last), z(first:last)), dot_product(z(first:last), z(first:last))]
    call MPI_Allreduce(MPI_IN_PLACE, dots, 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    zeta = shift + 1 / dots(1)
    x(first:last) = z(first:last) / sqrt(dots(2))
  end do
  call verify(zeta, 8.5971775078648d0, 1d-10)
  call MPI_Finalize(ierr)
  print '(a,i0)', 'done ', rank
contains
  include 'common.inc'

  ! The last row before those of a rank.
  integer function bound(of)
    integer, intent(in) :: of
    bound = int(int(n, 8) * of / size)
  end function

  ! A sum of outer products of sparse random vectors with falling weights; this rank's rows of it.
  subroutine make_matrix
    double precision, allocatable :: rows(:, :)
    double precision :: weight, element, vector(nonzeros + 1)
    integer :: places(nonzeros + 1), i, j, k, used, place
    integer(8) :: seed
    allocate (rows(n, first:last))
    rows = 0
    seed = times(1220703125_8, 314159265_8)
    weight = 1
    do i = 1, n
      used = 0
      do while (used < nonzeros)
        element = random(seed)
        place = int(2048 * random(seed)) + 1
        if (place > n .or. any(places(:used) == place)) cycle
        used = used + 1
        vector(used) = element
        places(used) = place
      end do
      do k = 1, used
        if (places(k) == i) exit
      end do
      used = max(used, k)
      places(k) = i
      vector(k) = 0.5d0
      do k = 1, used
        if (places(k) < first .or. places(k) > last) cycle
        do j = 1, used
          rows(places(j), places(k)) = rows(places(j), places(k)) + vector(j) * (weight * vector(k))
        end do
        if (places(k) == i) rows(i, i) = rows(i, i) + condition - shift
      end do
      weight = weight * condition**(1d0 / n)
    end do
    allocate (starts(first:last + 1), columns(count(rows /= 0)), values(count(rows /= 0)))
    used = 0
    do i = first, last
      starts(i) = used + 1
      do j = 1, n
        if (rows(j, i) == 0) cycle
        used = used + 1
        columns(used) = j
        values(used) = rows(j, i)
      end do
    end do
    starts(last + 1) = used + 1
  end subroutine

  ! Every rank's part of a vector to every rank.
  subroutine exchange(vector)
    double precision, intent(inout), asynchronous :: vector(n)
    integer :: requests(2 * size), other, used, error
    used = 0
    do other = 0, size - 1
      if (other == rank) cycle
      call MPI_Irecv(vector(bound(other) + 1), bound(other + 1) - bound(other), MPI_DOUBLE_PRECISION, other, 1, &
        MPI_COMM_WORLD, requests(used + 1), error)
      call MPI_Isend(vector(first), last - first + 1, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, &
        requests(used + 2), error)
      used = used + 2
    end do
    call MPI_Waitall(used, requests, MPI_STATUSES_IGNORE, error)
  end subroutine

  double precision function dot(left, right)
    double precision, intent(in) :: left(first:last), right(first:last)
    double precision :: mine
    integer :: error
    mine = dot_product(left, right)
    call MPI_Allreduce(mine, dot, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  end function

  ! z = A**-1 x, nearly.
  subroutine solve
    double precision :: p(n), q(first:last), r(first:last), rho, previous, alpha
    integer :: iteration, i, k
    z = 0
    r = x(first:last)
    p(first:last) = r
    rho = dot(r, r)
    do iteration = 1, 25
      call exchange(p)
      do i = first, last
        q(i) = 0
        do k = starts(i), starts(i + 1) - 1
          q(i) = q(i) + values(k) * p(columns(k))
        end do
      end do
      alpha = rho / dot(p(first:last), q)
      z(first:last) = z(first:last) + alpha * p(first:last)
      r = r - alpha * q
      previous = rho
      rho = dot(r, r)
      p(first:last) = r + (rho / previous) * p(first:last)
    end do
  end subroutine
end program
