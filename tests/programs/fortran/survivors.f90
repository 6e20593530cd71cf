! Goes on after a failure by the three ways of Fortran: rank 1 dies, and those who are left revoke, shrink and agree.
program survivors
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  interface
    function raise(signal) bind(C)
      import :: c_int
      integer(c_int), value :: signal
      integer(c_int) :: raise
    end function
  end interface
  integer :: rank, ranks, ierr, code, count, flag
  logical :: revoked
  type(MPI_Comm) :: left
  type(MPI_Group) :: failed
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  if (rank == 1) count = raise(9_c_int)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_Error_class(ierr, code)
  ! Somebody else may have seen it first, and have revoked.
  call expect(code == MPIX_ERR_PROC_FAILED .or. code == MPIX_ERR_REVOKED, 1)
  call MPIX_Comm_revoke(MPI_COMM_WORLD, ierr)
  call expect(ierr == MPI_SUCCESS, 2)
  call MPIX_Comm_is_revoked(MPI_COMM_WORLD, revoked)
  call expect(revoked, 3)
  call MPIX_Comm_get_failed(MPI_COMM_WORLD, failed)
  call MPI_Group_size(failed, count)
  call expect(count == 1, 4)
  call MPI_Group_free(failed)
  call MPIX_Comm_ack_failed(MPI_COMM_WORLD, ranks, count)
  call expect(count == 1, 5)
  call MPIX_Comm_shrink(MPI_COMM_WORLD, left)
  call MPI_Comm_size(left, count)
  call expect(count == ranks - 1, 6)
  flag = 6
  call MPIX_Comm_agree(left, flag)
  call expect(flag == 6, 7)
  call by_module(left%MPI_VAL, ranks - 1)
  call by_include(left%MPI_VAL, ranks - 1)
  call MPI_Comm_free(left)
  call MPI_Finalize()
  print '(a,i0)', 'done ', rank
end program

subroutine expect(is_right, place)
  implicit none
  logical, intent(in) :: is_right
  integer, intent(in) :: place
  if (is_right) return
  print '(a,i0)', 'wrong at ', place
  error stop 1
end subroutine

! A window that is revoked.
subroutine by_module(comm, members)
  use mpi
  implicit none
  integer, intent(in) :: comm, members
  integer :: win, memory(2), group, count, code, ierr
  logical :: revoked
  call MPI_Win_create(memory, 8_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, comm, win, ierr)
  call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN, ierr)
  call MPIX_Win_get_failed(win, group, ierr)
  call MPI_Group_size(group, count, ierr)
  call expect(count == 0, 11)
  ! All have the window.
  call MPI_Barrier(comm, ierr)
  call MPIX_Win_revoke(win, ierr)
  call MPIX_Win_is_revoked(win, revoked, ierr)
  call expect(revoked, 12)
  call MPI_Win_fence(0, win, code)
  call MPI_Error_class(code, count, ierr)
  call expect(count == MPIX_ERR_REVOKED, 13)
  call MPI_Win_free(win, ierr)
  call MPI_Comm_size(comm, count, ierr)
  call expect(count == members, 14)
end subroutine

! An agreement that is acknowledged.
subroutine by_include(comm, members)
  implicit none
  include 'mpif.h'
  integer comm, members, flag, group, count, ierr
  call MPIX_COMM_FAILURE_ACK(comm, ierr)
  call MPIX_COMM_FAILURE_GET_ACKED(comm, group, ierr)
  call MPI_GROUP_SIZE(group, count, ierr)
  call expect(count == 0, 21)
  flag = members
  call MPIX_COMM_AGREE(comm, flag, ierr)
  call expect(flag == members .and. ierr == MPI_SUCCESS, 22)
end subroutine
