! Programs with one mistake each, for pip-exec --check: mistaken MODE, with 2 ranks. Tests: check/fortran.
program mistaken
  use mpi
  implicit none
  character(len=20) :: mode
  integer :: code, rank
  call get_command_argument(1, mode)
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  select case (mode)
  case ('lost')
    call lost
  case ('left')
    call left
  case ('differ')
    call differ
  case ('beyond')
    call beyond
  case ('temporary')
    call temporary
  case ('right')
    call right
  case default
    call MPI_Abort(MPI_COMM_WORLD, 2, code)
  end select
  call MPI_Finalize(code)
contains
  subroutine lost
    integer :: request
    call MPI_Ibarrier(MPI_COMM_WORLD, request, code)
  end subroutine lost

  subroutine left
    integer :: column
    call MPI_Type_vector(3, 1, 3, MPI_REAL, column, code)
    call MPI_Type_commit(column, code)
  end subroutine left

  subroutine differ
    real :: out(4)
    integer :: in(4)
    out = 1.5
    if (rank == 0) call MPI_Send(out, 4, MPI_REAL, 1, 0, MPI_COMM_WORLD, code)
    if (rank == 1) call MPI_Recv(in, 4, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
  end subroutine differ

  subroutine beyond
    double precision, allocatable :: values(:)
    allocate(values(10))
    values = rank
    call MPI_Bcast(values, 11, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, code)
    deallocate(values)
  end subroutine beyond

  subroutine temporary
    ! The compiler passes a copy of every second element, and frees it before the send is complete.
    integer, allocatable :: values(:)
    integer :: request, in(5)
    allocate(values(10))
    values = rank
    call MPI_Issend(values(1:10:2), 5, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, request, code)
    call MPI_Recv(in, 5, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
    call MPI_Wait(request, MPI_STATUS_IGNORE, code)
    deallocate(values)
  end subroutine temporary

  subroutine right
    integer, allocatable :: values(:, :)
    integer :: row, requests(2), peer
    allocate(values(4, 5))
    values = rank
    peer = 1 - rank
    call MPI_Type_vector(5, 1, 4, MPI_INTEGER, row, code)
    call MPI_Type_commit(row, code)
    call MPI_Irecv(values(4, 1), 1, row, peer, 0, MPI_COMM_WORLD, requests(1), code)
    call MPI_Isend(values(1, 1), 1, row, peer, 0, MPI_COMM_WORLD, requests(2), code)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, code)
    call MPI_Type_free(row, code)
    deallocate(values)
  end subroutine right
end program mistaken
