! What is Open MPI's own in `use mpi_f08`: the symbols that its modules make programs import.
module functions
  use mpi_f08
  implicit none
  integer :: copies = 0, handled = 0
contains
  subroutine copy(comm, keyval, extra, value, copied, flag, ierror)
    type(MPI_Comm) :: comm
    integer :: keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra, value, copied
    logical :: flag
    copies = copies + 1
    copied = value + extra
    flag = comm == MPI_COMM_WORLD
    ierror = MPI_SUCCESS
  end subroutine
  subroutine longest(in, inout, length, datatype)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr), value :: in, inout
    integer :: length
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    if (datatype /= MPI_INTEGER) call MPI_Abort(MPI_COMM_WORLD, 4)
    call c_f_pointer(in, a, [length])
    call c_f_pointer(inout, b, [length])
    b = max(a, b)
  end subroutine
  subroutine handler(comm, code)
    type(MPI_Comm) :: comm
    integer :: code, class
    call MPI_Error_class(code, class)
    if (comm == MPI_COMM_SELF .and. class == MPI_ERR_RANK) handled = handled + 1
  end subroutine
  integer function bits(thing)
    class(*), intent(in) :: thing
    class(*), allocatable :: copy
    allocate (copy, source=thing)
    bits = storage_size(copy)
  end function
end module

program openmpi08
  use mpi_f08
  use functions
  implicit none
  integer :: rank, size, bytes, keyval, number(3), length
  integer(kind=MPI_ADDRESS_KIND) :: value, seen
  logical :: flag
  type(MPI_Status) :: status
  type(MPI_Comm) :: comm
  type(MPI_Op) :: op
  type(MPI_Errhandler) :: errhandler
  type(MPI_Request) :: requests(4)
  type(MPI_Datatype) :: made
  character(len=MPI_MAX_OBJECT_NAME) :: name
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call expect(MPI_COMM_WORLD /= MPI_COMM_SELF .and. MPI_INTEGER == MPI_INTEGER, 'handles are compared')

  call expect(bits(MPI_COMM_WORLD) == 32, 'a polymorphic communicator')
  call expect(bits(status) == 192, 'a polymorphic status')
  call MPI_Sizeof(1.0d0, bytes)
  call expect(bytes == 8, 'the size of a number')
  call MPI_Sizeof(number, bytes)
  call expect(bytes == 4, 'the size of an element')

  number = rank
  call MPI_Allreduce(MPI_IN_PLACE, number, 3, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
  call expect(all(number == size - 1), 'in place')
  call MPI_Op_create(longest, .true., op)
  number = rank
  call MPI_Allreduce(MPI_IN_PLACE, number, 3, MPI_INTEGER, op, MPI_COMM_WORLD)
  call expect(all(number == size - 1), 'an operation of the program')
  call MPI_Op_free(op)
  call expect(op == MPI_OP_NULL, 'no operation')

  value = 5
  call MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, keyval, 2_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, value)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_get_attr(comm, keyval, seen, flag)
  call expect(flag .and. seen == 7 .and. copies == 1, 'a copied attribute')
  call MPI_Comm_set_name(comm, 'the copy  ')
  call MPI_Comm_get_name(comm, name, length)
  call expect(length == 8 .and. name == 'the copy', 'a name')

  call MPI_Irecv(number(1), 1, MPI_INTEGER, rank, 9, comm, requests(1))
  call MPI_Isend(number(2), 1, MPI_INTEGER, rank, 9, comm, requests(2))
  call MPI_Wait(requests(1), status)
  call expect(status%MPI_SOURCE == rank .and. status%MPI_TAG == 9, 'a status')
  call MPI_Wait(requests(2), MPI_STATUS_IGNORE)
  call expect(requests(1) == MPI_REQUEST_NULL, 'no request')

  call MPI_Type_vector(2, 1, 3, MPI_INTEGER, made)
  call MPI_Type_commit(made)
  call MPI_Type_size(made, bytes)
  call expect(bytes == 8, 'a datatype')
  call MPI_Type_free(made)

  call MPI_Comm_create_errhandler(handler, errhandler)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, errhandler)
  call MPI_Send(number, 1, MPI_INTEGER, 7, 1, MPI_COMM_SELF)
  call expect(handled == 1, 'an error handler')
  call MPI_Errhandler_free(errhandler)
  call MPI_Comm_free(comm)
  call MPI_Finalize()
  print '(a,i0)', 'done ', rank
contains
  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    print '(a,i0,2a)', 'rank ', rank, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 3)
  end subroutine
end program
