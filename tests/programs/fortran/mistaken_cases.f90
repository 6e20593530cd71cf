! As mistaken.f90, with many cases in each run: mistaken_cases wrong, or right, with 2 ranks. Tests: check/cases.
program mistaken_cases
  use mpi
  implicit none
  character(len=10) :: mode
  integer :: code, rank, peer
  call get_command_argument(1, mode)
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  peer = 1 - rank
  if (mode == 'wrong') then
    call receive_left
    call request_lost
    call exchange_types
    call matched_types
    call some_bytes
    call changed
    call overlapping
    call puts_meet
    call started_twice
    call cancelled
    call group_left
    call circle
    call unreceived
  else
    call right_messages
    call right_columns
    call right_persistent
    call right_windows
    call right_collectives
  end if
  call MPI_Finalize(code)
contains
  subroutine receive_left
    integer, save :: in(2), other(2)
    integer :: request, second
    ! The second handle overwrites nothing.
    call MPI_Irecv(in, 2, MPI_INTEGER, peer, 1, MPI_COMM_WORLD, request, code)
    call MPI_Irecv(other, 2, MPI_INTEGER, peer, 20, MPI_COMM_WORLD, second, code)
    call MPI_Send([1, 2], 2, MPI_INTEGER, peer, 20, MPI_COMM_WORLD, code)
    call MPI_Wait(second, MPI_STATUS_IGNORE, code)
    call MPI_Barrier(MPI_COMM_WORLD, code)
  end subroutine receive_left

  subroutine request_lost
    integer, save :: out(2), in
    integer :: request, i
    do i = 1, 2
      call MPI_Issend(out(i), 1, MPI_INTEGER, rank, 2, MPI_COMM_WORLD, request, code)
    end do
    do i = 1, 2
      call MPI_Recv(in, 1, MPI_INTEGER, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
    end do
    call MPI_Wait(request, MPI_STATUS_IGNORE, code)
  end subroutine request_lost

  subroutine exchange_types
    double precision :: out(2)
    complex :: in(2)
    out = rank
    call MPI_Sendrecv(out, 2, MPI_DOUBLE_PRECISION, peer, 3, in, 2, MPI_COMPLEX, peer, 3, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, code)
  end subroutine exchange_types

  subroutine matched_types
    integer :: out(3), message, request
    real :: in(3)
    out = rank
    call MPI_Isend(out, 3, MPI_INTEGER, peer, 4, MPI_COMM_WORLD, request, code)
    call MPI_Mprobe(peer, 4, MPI_COMM_WORLD, message, MPI_STATUS_IGNORE, code)
    call MPI_Mrecv(in, 3, MPI_REAL, message, MPI_STATUS_IGNORE, code)
    call MPI_Wait(request, MPI_STATUS_IGNORE, code)
  end subroutine matched_types

  subroutine some_bytes
    integer :: data(3)
    data = rank
    if (rank == 0) call MPI_Ssend(data, 12, MPI_BYTE, 1, 5, MPI_COMM_WORLD, code)
    if (rank == 1) call MPI_Recv(data, 3, MPI_INTEGER, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
  end subroutine some_bytes

  subroutine changed
    integer, asynchronous :: out(20)
    integer :: in(20), request
    out = rank
    call MPI_Isend(out, 20, MPI_INTEGER, peer, 6, MPI_COMM_WORLD, request, code)
    out(8) = 77
    call MPI_Recv(in, 20, MPI_INTEGER, peer, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
    call MPI_Wait(request, MPI_STATUS_IGNORE, code)
  end subroutine changed

  subroutine overlapping
    integer, asynchronous :: values(8)
    integer :: requests(2)
    values = 3 ! On both ranks: what is received changes nothing that is sent.
    call MPI_Irecv(values(1), 4, MPI_INTEGER, peer, 7, MPI_COMM_WORLD, requests(1), code)
    call MPI_Isend(values(4), 4, MPI_INTEGER, peer, 7, MPI_COMM_WORLD, requests(2), code)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, code)
  end subroutine overlapping

  subroutine puts_meet
    integer, save :: memory(4), out(2)
    integer :: window
    integer(MPI_ADDRESS_KIND) :: bytes
    bytes = 16
    out = rank + 1
    call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window, code)
    call MPI_Win_fence(0, window, code)
    bytes = rank
    call MPI_Put(out, 2, MPI_INTEGER, 0, bytes, 2, MPI_INTEGER, window, code)
    call MPI_Win_fence(0, window, code)
    call MPI_Win_free(window, code)
  end subroutine puts_meet

  subroutine started_twice
    integer, save :: in(2)
    integer :: request, class
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, code)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, code)
    call MPI_Recv_init(in, 2, MPI_INTEGER, peer, 8, MPI_COMM_WORLD, request, code)
    call MPI_Start(request, code)
    call MPI_Start(request, code)
    call MPI_Error_class(code, class, code)
    call MPI_Cancel(request, code)
    call MPI_Wait(request, MPI_STATUS_IGNORE, code)
    call MPI_Request_free(request, code)
  end subroutine started_twice

  subroutine cancelled
    integer, save :: out(2)
    integer :: request, status(MPI_STATUS_SIZE)
    logical :: is_cancelled
    call MPI_Issend(out, 2, MPI_INTEGER, rank, 9, MPI_COMM_WORLD, request, code)
    call MPI_Cancel(request, code)
    call MPI_Wait(request, status, code)
    call MPI_Test_cancelled(status, is_cancelled, code)
    if (.not. is_cancelled) call MPI_Recv(out, 2, MPI_INTEGER, rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
  end subroutine cancelled

  subroutine group_left
    integer :: group
    call MPI_Comm_group(MPI_COMM_WORLD, group, code)
  end subroutine group_left

  subroutine circle
    integer :: out, in
    out = rank
    call MPI_Send(out, 1, MPI_INTEGER, peer, 10, MPI_COMM_WORLD, code)
    call MPI_Recv(in, 1, MPI_INTEGER, peer, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
  end subroutine circle

  subroutine unreceived
    logical :: flag
    flag = .true.
    if (rank == 1) call MPI_Send(flag, 1, MPI_LOGICAL, 0, 11, MPI_COMM_WORLD, code)
  end subroutine unreceived

  subroutine right_messages
    integer :: out(4), in(4), requests(2), message, i
    out = rank
    do i = 1, 3
      call MPI_Irecv(in, 4, MPI_INTEGER, peer, i, MPI_COMM_WORLD, requests(1), code)
      call MPI_Isend(out, 4, MPI_INTEGER, peer, i, MPI_COMM_WORLD, requests(2), code)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, code)
    end do
    call MPI_Isend(out, 4, MPI_INTEGER, peer, 4, MPI_COMM_WORLD, requests(1), code)
    call MPI_Mprobe(peer, 4, MPI_COMM_WORLD, message, MPI_STATUS_IGNORE, code)
    call MPI_Mrecv(in, 4, MPI_INTEGER, message, MPI_STATUS_IGNORE, code)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, code)
  end subroutine right_messages

  subroutine right_columns
    double precision :: field(6, 5)
    integer :: row
    field = rank
    call MPI_Type_vector(5, 1, 6, MPI_DOUBLE_PRECISION, row, code)
    call MPI_Type_commit(row, code)
    call MPI_Sendrecv(field(2, 1), 1, row, peer, 1, field(6, 1), 1, row, peer, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, code)
    call MPI_Sendrecv_replace(field(3, 1), 1, row, peer, 2, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
    call MPI_Type_free(row, code)
  end subroutine right_columns

  subroutine right_persistent
    integer, save :: out(2), in(2)
    integer :: requests(2), i
    call MPI_Recv_init(in, 2, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, requests(1), code)
    call MPI_Send_init(out, 2, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, requests(2), code)
    do i = 1, 3
      out = i
      call MPI_Startall(2, requests, code)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, code)
    end do
    call MPI_Request_free(requests(1), code)
    call MPI_Request_free(requests(2), code)
  end subroutine right_persistent

  subroutine right_windows
    integer, save :: memory(4), out(2)
    integer :: window
    integer(MPI_ADDRESS_KIND) :: place
    place = 16
    call MPI_Win_create(memory, place, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window, code)
    call MPI_Win_fence(0, window, code)
    place = 2 * rank
    call MPI_Put(out, 2, MPI_INTEGER, peer, place, 2, MPI_INTEGER, window, code)
    call MPI_Accumulate(out, 1, MPI_INTEGER, rank, place, 1, MPI_INTEGER, MPI_SUM, window, code)
    call MPI_Win_fence(0, window, code)
    call MPI_Win_free(window, code)
  end subroutine right_windows

  subroutine right_collectives
    double precision :: sums(3), parts(3)
    integer :: request, half
    parts = rank
    call MPI_Iallreduce(parts, sums, 3, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, request, code)
    call MPI_Wait(request, MPI_STATUS_IGNORE, code)
    call MPI_Comm_split(MPI_COMM_WORLD, rank, 0, half, code)
    call MPI_Bcast(parts, 3, MPI_DOUBLE_PRECISION, 0, half, code)
    call MPI_Comm_free(half, code)
  end subroutine right_collectives
end program mistaken_cases
