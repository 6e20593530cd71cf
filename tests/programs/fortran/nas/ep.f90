! EP of the NAS Parallel Benchmarks, class S: Gaussian pairs, counted by square rings, and two sums.
program ep
  use mpi
  implicit none
  integer, parameter :: batches = 2**8, pairs = 2**16
  integer :: rank, size, ierr, batch, i, ring
  integer(8) :: seed
  double precision :: x, y, t, factor, sums(2), counts(0:9), all_sums(2), all_counts(0:9)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  sums = 0
  counts = 0
  do batch = rank, batches - 1, size
    seed = ahead(271828183_8, 2_8 * pairs * batch)
    do i = 1, pairs
      x = 2 * random(seed) - 1
      y = 2 * random(seed) - 1
      t = x * x + y * y
      if (t > 1) cycle
      factor = sqrt(-2 * log(t) / t)
      sums = sums + [x, y] * factor
      ring = int(max(abs(x * factor), abs(y * factor)))
      counts(ring) = counts(ring) + 1
    end do
  end do
  call MPI_Allreduce(sums, all_sums, 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Reduce(counts, all_counts, 10, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
  call MPI_Bcast(all_counts, 10, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)
  call verify(all_sums(1), -3.247834652034740d3, 1d-8)
  call verify(all_sums(2), -6.958407078382297d3, 1d-8)
  call verify(sum(all_counts), 13176389d0, 0d0)
  call MPI_Finalize(ierr)
  print '(a,i0)', 'done ', rank
contains
  include 'common.inc'
end program
