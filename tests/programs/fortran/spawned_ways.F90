! Every function of the chapter on dynamic processes, in each of the three ways to use MPI. The file includes itself,
! once for each way.
#ifndef WAY

#define WAY mpi_f08_way
#define USED use mpi_f08
#define COMM type(MPI_Comm)
#define INFO type(MPI_Info)
#include "spawned_ways.F90"

#undef WAY
#undef USED
#undef COMM
#undef INFO
#define COMM integer
#define INFO integer
#define WAY mpi_way
#define USED use mpi
#include "spawned_ways.F90"

#undef WAY
#undef USED
#define WAY mpif_way
#define USED
#define INCLUDED include 'mpif.h'
#include "spawned_ways.F90"

module sockets
  use iso_c_binding
  implicit none
  interface
    integer(c_int) function socket(domain, kind, protocol) bind(C)
      import
      integer(c_int), value :: domain, kind, protocol
    end function
    integer(c_int) function bind_to(descriptor, address, length) bind(C, name='bind')
      import
      integer(c_int), value :: descriptor, length
      character(kind=c_char), intent(in) :: address(*)
    end function
    integer(c_int) function connect_to(descriptor, address, length) bind(C, name='connect')
      import
      integer(c_int), value :: descriptor, length
      character(kind=c_char), intent(in) :: address(*)
    end function
    integer(c_int) function listen_at(descriptor, backlog) bind(C, name='listen')
      import
      integer(c_int), value :: descriptor, backlog
    end function
    integer(c_int) function accept_at(descriptor, address, length) bind(C, name='accept')
      import
      integer(c_int), value :: descriptor
      type(c_ptr), value :: address, length
    end function
    integer(c_int) function close_it(descriptor) bind(C, name='close')
      import
      integer(c_int), value :: descriptor
    end function
    integer(c_int) function getpid() bind(C)
      import
    end function
  end interface
contains
  ! An abstract address of Unix sockets with this number.
  function address_of(number) result(address)
    integer, intent(in) :: number
    character(kind=c_char, len=24) :: address
    write (address, '(3a,i0.10,a)') char(1), char(0), char(0), number, '-fortran'
    address(22:) = 'end'
  end function
end module

program spawned_ways
  use mpi_f08
  use sockets
  implicit none
  interface
    subroutine mpi_f08_way(program, descriptor)
      character(len=*), intent(in) :: program
      integer, intent(in) :: descriptor
    end subroutine
    subroutine mpi_way(program, descriptor)
      character(len=*), intent(in) :: program
      integer, intent(in) :: descriptor
    end subroutine
    subroutine mpif_way(program, descriptor)
      character(len=*), intent(in) :: program
      integer, intent(in) :: descriptor
    end subroutine
  end interface
  integer :: rank, size, listener, descriptor, number
  type(MPI_Comm) :: parents
  character(len=256) :: name
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Comm_get_parent(parents)
  call get_command_argument(0, name)
  listener = -1
  descriptor = -1
  if (parents == MPI_COMM_NULL) then
    number = getpid()
    if (rank == 0) listener = listening(number)
    call MPI_Bcast(number, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
    if (rank == 0) descriptor = accept_at(listener, c_null_ptr, c_null_ptr)
    if (rank == 1) descriptor = connected(number)
    if (rank < 2 .and. descriptor < 0) error stop 3
  end if
  ! Each child has a way of its own.
  if (parents == MPI_COMM_NULL .or. rank == 0) call mpi_f08_way(trim(name), descriptor)
  if (parents == MPI_COMM_NULL .or. rank == 1) call mpi_way(trim(name), descriptor)
  if (parents == MPI_COMM_NULL .or. rank == 2) call mpif_way(trim(name), descriptor)
  if (descriptor >= 0) number = close_it(descriptor)
  if (parents == MPI_COMM_NULL) print '(a,i0)', 'done ', rank
  call MPI_Finalize()
contains
  integer function listening(number)
    integer, intent(in) :: number
    listening = socket(1, 1, 0)
    if (bind_to(listening, address_of(number), 24) /= 0) error stop 3
    if (listen_at(listening, 8) /= 0) error stop 3
  end function
  integer function connected(number)
    integer, intent(in) :: number
    connected = socket(1, 1, 0)
    if (connect_to(connected, address_of(number), 24) /= 0) error stop 3
  end function
end program

#else

subroutine WAY(program, descriptor)
  USED
  implicit none
#ifdef INCLUDED
  INCLUDED
#endif
  character(len=*), intent(in) :: program
  integer, intent(in) :: descriptor
  integer :: rank, size, ierror
  COMM :: other
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)
  call MPI_Comm_get_parent(other, ierror)
  if (other /= MPI_COMM_NULL) then
    call child()
    return
  end if
  call spawn()
  call spawn_two()
  call names()
  call join()
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
contains
  subroutine expect(right, what)
    logical, intent(in) :: right
    character(len=*), intent(in) :: what
    if (right) return
    print *, 'wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 3, ierror)
  end subroutine

  subroutine child()
    integer :: got
    call expect(command_argument_count() == 0 .or. command_argument_count() == 2, 'arguments of a child')
    got = command_argument_count()
    call MPI_Send(got, 1, MPI_INTEGER, 0, 1, other, ierror)
    call MPI_Comm_disconnect(other, ierror)
    call expect(other == MPI_COMM_NULL, 'handle after disconnection')
  end subroutine

  ! How many arguments child number `from` has.
  integer function arguments_of(children, from)
    COMM, intent(in) :: children
    integer, intent(in) :: from
    call MPI_Recv(arguments_of, 1, MPI_INTEGER, from, 1, children, MPI_STATUS_IGNORE, ierror)
  end function

  subroutine spawn()
    COMM :: children
    integer :: i, n, codes(3)
    INFO :: hints
    codes = -1
    call MPI_Info_create(hints, ierror)
    call MPI_Info_set(hints, 'soft', '1:2', ierror)
    call MPI_Comm_spawn(program, MPI_ARGV_NULL, 3, hints, 0, MPI_COMM_WORLD, children, codes, ierror)
    call expect(ierror == MPI_SUCCESS, 'spawn')
    call MPI_Info_free(hints, ierror)
    call MPI_Comm_remote_size(children, n, ierror)
    call expect(n == 2, 'children')
    call expect(all(codes(:2) == MPI_SUCCESS) .and. codes(3) /= MPI_SUCCESS, 'codes')
    do i = 0, merge(1, -1, rank == 0)
      call expect(arguments_of(children, i) == 0, 'no arguments')
    end do
    call MPI_Comm_disconnect(children, ierror)
    call MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, children, MPI_ERRCODES_IGNORE, ierror)
    call expect(arguments_of(children, 0) == 0, 'none to a child of one')
    call MPI_Comm_disconnect(children, ierror)
  end subroutine

  subroutine spawn_two()
    COMM :: children
    INFO :: hints(2)
    character(len=300) :: commands(2)
    character(len=8) :: arguments(2, 3)
    integer :: i, counts(2), codes(3)
    commands = program
    counts = [1, 2]
    hints = MPI_INFO_NULL
    codes = -1
    call MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, counts, hints, 0, MPI_COMM_WORLD, children, codes, ierror)
    call expect(all(codes == MPI_SUCCESS), 'codes of two commands')
    do i = 0, merge(2, -1, rank == 0)
      call expect(arguments_of(children, i) == 0, 'no arguments to two commands')
    end do
    call MPI_Comm_disconnect(children, ierror)
    arguments = ' '
    arguments(2, 1) = 'a'
    arguments(2, 2) = 'b'
    call MPI_Comm_spawn_multiple(2, commands, arguments, counts, hints, 0, MPI_COMM_WORLD, children, &
      MPI_ERRCODES_IGNORE, ierror)
    do i = 0, merge(2, -1, rank == 0)
      call expect(arguments_of(children, i) == merge(0, 2, i == 0), 'arguments to the second command')
    end do
    call MPI_Comm_disconnect(children, ierror)
  end subroutine

  ! The last rank finds the first one by a name.
  subroutine names()
    character(len=MPI_MAX_PORT_NAME) :: port, found
    integer :: n, class
    if (rank == 0) then
      call MPI_Open_port(MPI_INFO_NULL, port, ierror)
      call MPI_Publish_name('a name of Fortran', MPI_INFO_NULL, port, ierror)
      call expect(ierror == MPI_SUCCESS, 'publish')
    end if
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    if (rank == size - 1) then
      call MPI_Lookup_name('a name of Fortran  ', MPI_INFO_NULL, found, ierror)
      call expect(ierror == MPI_SUCCESS, 'lookup')
      call MPI_Comm_connect(found, MPI_INFO_NULL, 0, MPI_COMM_SELF, other, ierror)
      call MPI_Send(rank, 1, MPI_INTEGER, 0, 2, other, ierror)
      call MPI_Comm_disconnect(other, ierror)
    end if
    if (rank == 0) then
      call MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, other, ierror)
      call MPI_Recv(n, 1, MPI_INTEGER, 0, 2, other, MPI_STATUS_IGNORE, ierror)
      call expect(n == size - 1, 'who has connected')
      call MPI_Comm_disconnect(other, ierror)
      call MPI_Unpublish_name('a name of Fortran', MPI_INFO_NULL, port, ierror)
      call expect(ierror == MPI_SUCCESS, 'unpublish')
      call MPI_Close_port(port, ierror)
      call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
      call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierror)
      call MPI_Lookup_name('a name of Fortran', MPI_INFO_NULL, found, ierror)
      call MPI_Error_class(ierror, class, ierror)
      call expect(class == MPI_ERR_NAME, 'lookup of no name')
      call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, ierror)
      call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL, ierror)
    end if
  end subroutine

  subroutine join()
    COMM :: joined
    integer :: n
    if (descriptor < 0) return
    call MPI_Comm_join(descriptor, joined, ierror)
    call expect(ierror == MPI_SUCCESS, 'join')
    n = -1
    if (rank == 1) call MPI_Send(rank, 1, MPI_INTEGER, 0, 3, joined, ierror)
    if (rank == 0) call MPI_Recv(n, 1, MPI_INTEGER, 0, 3, joined, MPI_STATUS_IGNORE, ierror)
    call expect(rank == 1 .or. n == 1, 'who has joined')
    call MPI_Comm_disconnect(joined, ierror)
  end subroutine
end subroutine

#endif
