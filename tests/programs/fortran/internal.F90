! Internal procedures that are passed as arguments reach the variables of their host by code on the stack, which is
! executable then. The module is built into a shared library too, which programs are linked to, or open.
module rows
   implicit none
   interface
      real function of_one(x)
         real, intent(in) :: x
      end function of_one
   end interface
contains
   real function quad(f, n)
      procedure(of_one) :: f
      integer, intent(in) :: n
      integer :: i
      quad = 0
      do i = 1, n
         quad = quad + f(real(i))
      end do
   end function quad

   real function scaled(k, n)
      integer, intent(in) :: k, n
      scaled = quad(inner, n)
   contains
      real function inner(x)
         real, intent(in) :: x
         inner = k*x
      end function inner
   end function scaled
end module rows

! For programs in C.
real(c_float) function row_total(k, n) bind(c)
   use iso_c_binding
   use rows
   implicit none
   integer(c_int), value :: k, n
   row_total = scaled(k, n)
end function row_total

#ifndef LIBRARY
program internal
   use mpi
   use rows
   implicit none
   integer :: rank, error
   call MPI_Init(error)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
   if (scaled(rank + 2, 4) /= 10*(rank + 2)) stop 3
   if (quad(own, 3) /= 6 + 3*rank) stop 4
   call MPI_Barrier(MPI_COMM_WORLD, error)
   if (rank == 0) print '(a)', 'passed'
   call MPI_Finalize(error)
contains
   real function own(x)
      real, intent(in) :: x
      own = x + rank
   end function own
end program internal
#endif
