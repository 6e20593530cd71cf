! The Fortran ranks of a job whose first half is C++ (mixed.cpp).
program mixed
  use mpi
  implicit none
  integer :: rank, size, ierr, reversed, counted, position
  double precision :: total
  character :: packed(100)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  call MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, reversed, ierr)
  call totals(reversed, rank + 0.5d0, total, counted)
  position = 0
  call MPI_Pack(rank, 1, MPI_INTEGER, packed, 100, position, MPI_COMM_WORLD, ierr)
  call MPI_Pack(.true., 1, MPI_LOGICAL, packed, 100, position, MPI_COMM_WORLD, ierr)
  call MPI_Pack('c yz', 4, MPI_CHARACTER, packed, 100, position, MPI_COMM_WORLD, ierr)
  call MPI_Send(packed, position, MPI_PACKED, size - 1 - rank, 7, MPI_COMM_WORLD, ierr)
  if (total /= size**2 / 2d0 .or. counted /= size) then
    print *, 'rank ', rank, ': total ', total, ' of ', counted
    call MPI_Abort(MPI_COMM_WORLD, 3, ierr)
  end if
  call MPI_Comm_free(reversed, ierr)
  call MPI_Finalize(ierr)
  print '(a,i0)', 'done ', rank
end program
