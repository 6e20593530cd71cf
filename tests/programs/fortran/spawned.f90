! Processes that start and meet later, in each of the three ways to use MPI.
module checks
  implicit none
contains
  subroutine expect(right, what)
    logical, intent(in) :: right
    character(len=*), intent(in) :: what
    if (.not. right) then
      print *, 'wrong: ', what
      error stop 3
    end if
  end subroutine
end module

subroutine spawn_f08(program, size)
  use mpi_f08
  use checks
  implicit none
  character(len=*), intent(in) :: program
  integer, intent(in) :: size
  type(MPI_Comm) :: children, all
  integer :: codes(2), n, total, rank
  character(len=8) :: arguments(3), others(1)
  ! Blanks on either side do not count. Off the root nothing ends the list, which nobody is to read.
  arguments = [character(len=8) :: ' child', '  a b', ' ']
  others = 'endless '
  codes = -1
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  if (rank == 0) then
    call MPI_Comm_spawn('  '//program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, children, codes)
  else
    call MPI_Comm_spawn(' ', others, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, children, codes)
  end if
  call expect(all_zero(codes), 'codes')
  call MPI_Comm_remote_size(children, n)
  call expect(n == 2, 'children')
  call MPI_Intercomm_merge(children, .false., all)
  call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, all)
  call expect(total == size + 2, 'sum')
  call MPI_Comm_free(all)
  call MPI_Comm_disconnect(children)
contains
  logical function all_zero(list)
    integer, intent(in) :: list(:)
    all_zero = maxval(abs(list)) == 0
  end function
end subroutine

subroutine spawn_module(program, size)
  use mpi
  use checks
  implicit none
  character(len=*), intent(in) :: program
  integer, intent(in) :: size
  integer :: children, all, n, total, one, rank, ierror
  character(len=256) :: commands(2)
  character(len=8) :: arguments(2, 3)
  commands = '   '//program
  arguments = ' '
  arguments(:, 1) = ' child'
  arguments(:, 2) = ' a b'
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  if (rank == 0) then
    call MPI_Comm_spawn_multiple(2, commands, arguments, [1, 1], [MPI_INFO_NULL, MPI_INFO_NULL], 0, MPI_COMM_WORLD, &
      children, MPI_ERRCODES_IGNORE, ierror)
  else
    ! Off the root the number of commands means nothing.
    call MPI_Comm_spawn_multiple(2000000000, commands, arguments, [1, 1], [MPI_INFO_NULL, MPI_INFO_NULL], 0, &
      MPI_COMM_WORLD, children, MPI_ERRCODES_IGNORE, ierror)
  end if
  call MPI_Comm_remote_size(children, n, ierror)
  call expect(n == 2, 'children of two commands')
  call MPI_Intercomm_merge(children, .false., all, ierror)
  one = 1
  call MPI_Allreduce(one, total, 1, MPI_INTEGER, MPI_SUM, all, ierror)
  call expect(total == size + 2, 'sum with those of two commands')
  call MPI_Comm_free(all, ierror)
  call MPI_Comm_disconnect(children, ierror)
end subroutine

! What is no communicator is reported once, whatever the library has to know of it before.
module reports
  implicit none
  integer :: heard = 0
contains
  subroutine note(comm, code)
    integer :: comm, code
    heard = heard + 1 + 0 * (comm + code)
  end subroutine
end module

subroutine refused()
  use mpi
  use checks
  use reports
  implicit none
  integer :: errhandler, none, code, class, ierror
  call MPI_Comm_create_errhandler(note, errhandler, ierror)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler, ierror)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, errhandler, ierror)
  call MPI_Comm_spawn('nothing', MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_NULL, none, MPI_ERRCODES_IGNORE, code)
  call MPI_Error_class(code, class, ierror)
  call expect(class == MPI_ERR_COMM .and. heard == 1, 'a report of no communicator')
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, ierror)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL, ierror)
  call MPI_Errhandler_free(errhandler, ierror)
end subroutine

! The first rank accepts the others, one by one.
subroutine ports(rank, size)
  implicit none
  include 'mpif.h'
  integer, intent(in) :: rank, size
  character(len=MPI_MAX_PORT_NAME) :: port
  integer :: other, n, i, ierror
  if (rank == 0) call MPI_Open_port(MPI_INFO_NULL, port, ierror)
  call MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHARACTER, 0, MPI_COMM_WORLD, ierror)
  if (rank == 0) then
    do i = 2, size
      call MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, other, ierror)
      call MPI_Recv(n, 1, MPI_INTEGER, 0, 4, other, MPI_STATUS_IGNORE, ierror)
      if (n < 1 .or. n >= size) error stop 3
      call MPI_Comm_disconnect(other, ierror)
    end do
    call MPI_Close_port(port, ierror)
  else
    call MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, other, ierror)
    call MPI_Send(rank, 1, MPI_INTEGER, 0, 4, other, ierror)
    call MPI_Comm_disconnect(other, ierror)
  end if
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
end subroutine

program spawned
  use mpi_f08
  use checks
  implicit none
  integer :: rank, size, total
  type(MPI_Comm) :: parents, all
  character(len=256) :: name, argument
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Comm_get_parent(parents)
  if (parents == MPI_COMM_NULL) then
    call get_command_argument(0, name)
    call spawn_f08(trim(name), size)
    call spawn_module(trim(name), size)
    call ports(rank, size)
    call refused()
    print '(a,i0)', 'done ', rank
  else
    call expect(command_argument_count() == 2, 'arguments')
    call get_command_argument(2, argument)
    call expect(argument == 'a b', 'the second argument')
    call MPI_Intercomm_merge(parents, .true., all)
    call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, all)
    call MPI_Comm_free(all)
    call MPI_Comm_disconnect(parents)
  end if
  call MPI_Finalize()
end program
