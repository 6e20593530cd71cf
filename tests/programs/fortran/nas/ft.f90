! FT of the NAS Parallel Benchmarks, class S: a partial differential equation by Fourier transforms of 64**3 points in
! slabs, transposed with MPI_Alltoall. Ranks are a power of 2.
program ft
  use mpi
  implicit none
  integer, parameter :: n = 64, real8 = kind(1d0)
  double precision, parameter :: pi = 3.141592653589793238d0
  complex(real8), parameter :: published(6) = [ &
    (5.546087004964d2, 4.845363331978d2), (5.546385409189d2, 4.865304269511d2), &
    (5.546148406171d2, 4.883910722336d2), (5.545423607415d2, 4.901273169046d2), &
    (5.544255039624d2, 4.917475857993d2), (5.542683411902d2, 4.932597244941d2)]
  integer :: rank, size, ierr, i, j, k, depth, iteration
  integer(8) :: seed
  complex(real8), allocatable :: field(:, :, :), turned(:, :, :), work(:, :, :)
  complex(real8) :: mine, total
  double precision, allocatable :: decay(:, :, :)
  double precision :: x, y
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  depth = n / size
  ! field(x, y, z) has a slab of z, turned(z, y, x) one of x.
  allocate (field(n, n, depth), turned(n, n, depth), work(n, n, depth), decay(n, n, depth))
  seed = ahead(314159265_8, 2_8 * n * n * depth * rank)
  do k = 1, depth
    do j = 1, n
      do i = 1, n
        x = random(seed)
        y = random(seed)
        field(i, j, k) = cmplx(x, y, real8)
        decay(i, j, k) = exp(-4d-6 * pi**2 * (wave(i)**2 + wave(j)**2 + wave(rank * depth + k)**2))
      end do
    end do
  end do
  call planes(field, 1)
  call transpose_slabs(field, turned)
  call lines(turned, 1)
  do iteration = 1, 6
    turned = turned * decay
    work = turned
    call lines(work, -1)
    call transpose_slabs(work, field)
    call planes(field, -1)
    mine = 0
    do i = 1, 1024
      k = mod(5 * i, n) - rank * depth + 1
      if (k >= 1 .and. k <= depth) mine = mine + field(mod(i, n) + 1, mod(3 * i, n) + 1, k)
    end do
    mine = mine / n**3
    call MPI_Allreduce(mine, total, 1, MPI_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD, ierr)
    call verify(real(total, real8), real(published(iteration), real8), 1d-12)
    call verify(aimag(total), aimag(published(iteration)), 1d-12)
  end do
  call MPI_Finalize(ierr)
  print '(a,i0)', 'done ', rank
contains
  include 'common.inc'

  integer function wave(i)
    integer, intent(in) :: i
    wave = mod(i - 1 + n / 2, n) - n / 2
  end function

  ! (a, y, c) with a slab of c becomes (c, y, a) with a slab of a.
  subroutine transpose_slabs(source, target)
    complex(real8), intent(in) :: source(n, n, depth)
    complex(real8), intent(out) :: target(n, n, depth)
    complex(real8) :: sent(depth, n, depth, size), got(depth, n, depth, size)
    integer :: part, a, c, error
    do part = 1, size
      sent(:, :, :, part) = source((part - 1) * depth + 1:part * depth, :, :)
    end do
    call MPI_Alltoall(sent, depth * n * depth, MPI_DOUBLE_COMPLEX, got, depth * n * depth, MPI_DOUBLE_COMPLEX, &
      MPI_COMM_WORLD, error)
    do part = 1, size
      do c = 1, depth
        do a = 1, depth
          target((part - 1) * depth + c, :, a) = got(a, :, c, part)
        end do
      end do
    end do
  end subroutine

  subroutine lines(array, sign)
    complex(real8), intent(inout) :: array(n, n, depth)
    integer, intent(in) :: sign
    integer :: b, c
    do c = 1, depth
      do b = 1, n
        call transform(array(:, b, c), sign)
      end do
    end do
  end subroutine

  subroutine planes(array, sign)
    complex(real8), intent(inout) :: array(n, n, depth)
    integer, intent(in) :: sign
    complex(real8) :: line(n)
    integer :: a, c
    call lines(array, sign)
    do c = 1, depth
      do a = 1, n
        line = array(a, :, c)
        call transform(line, sign)
        array(a, :, c) = line
      end do
    end do
  end subroutine

  ! The Fourier transform of one line, by halves.
  recursive subroutine transform(line, sign)
    complex(real8), intent(inout) :: line(:)
    integer, intent(in) :: sign
    complex(real8) :: even(ubound(line, 1) / 2), odd(ubound(line, 1) / 2)
    integer :: half, m
    half = ubound(line, 1) / 2
    if (half == 0) return
    even = line(1::2)
    odd = line(2::2)
    call transform(even, sign)
    call transform(odd, sign)
    odd = odd * [(exp(cmplx(0, sign * pi * m / half, real8)), m = 0, half - 1)]
    line = [even + odd, even - odd]
  end subroutine
end program
