! Datatypes of Fortran's kinds, whose sizes are those of the compiler's kinds; and what there is of files: an error
! handler that gets Fortran's handle, and data representations, which are refused by name.
module heard_of
  use mpi_f08
  implicit none
  integer :: heard = 0, seen = 0
contains
  subroutine on_error(file, code)
    type(MPI_File) :: file
    integer :: code
    heard = heard + merge(1, 100, file == MPI_FILE_NULL)
    call MPI_Error_class(code, seen)
  end subroutine on_error

  subroutine no_extent(datatype, extent, extra_state, ierror)
    type(MPI_Datatype) :: datatype
    integer(kind=MPI_ADDRESS_KIND) :: extent, extra_state
    integer :: ierror
    ierror = MPI_ERR_OTHER
    if (extra_state /= 0 .or. datatype == MPI_DATATYPE_NULL) extent = 0
  end subroutine no_extent
end module heard_of

program kinds
  use mpi_f08
  use heard_of
  implicit none
  integer :: rank
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
  call integers()
  call reals()
  call handles()
  call sizes()
  call reductions()
  call files()
  call MPI_Finalize()
  print '(a,i0)', 'done ', rank

contains

  subroutine expect(holds, what, number)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    integer, intent(in) :: number
    if (holds) return
    print '(a,i0,3a,i0)', 'rank ', rank, ': ', what, ' ', number
    call MPI_Abort(MPI_COMM_WORLD, 3)
  end subroutine expect

  ! Bytes, envelope and arguments of a datatype, or the class of the error.
  subroutine described(datatype, error, kind_bytes, combiner, arguments, what)
    type(MPI_Datatype), intent(in) :: datatype
    integer, intent(in) :: error, kind_bytes, combiner, arguments(:)
    character(len=*), intent(in) :: what
    integer :: class, bytes, lengths(4), contents(2)
    integer(kind=MPI_ADDRESS_KIND) :: lower, extent, addresses(1)
    type(MPI_Datatype) :: datatypes(1)
    if (kind_bytes == 0) then
      call MPI_Error_class(error, class)
      call expect(class == MPI_ERR_ARG, what // ': no such kind', arguments(1))
      return
    end if
    call expect(error == MPI_SUCCESS, what, arguments(1))
    call MPI_Type_size(datatype, bytes)
    call MPI_Type_get_extent(datatype, lower, extent)
    call expect(bytes == kind_bytes .and. lower == 0 .and. extent == kind_bytes, what // ': size', arguments(1))
    call MPI_Type_get_envelope(datatype, lengths(1), lengths(2), lengths(3), lengths(4))
    call expect(all(lengths == [size(arguments), 0, 0, combiner]), what // ': envelope', arguments(1))
    call MPI_Type_get_contents(datatype, lengths(1), 0, 0, contents, addresses, datatypes)
    call expect(all(contents(1:size(arguments)) == arguments), what // ': contents', arguments(1))
  end subroutine described

  subroutine integers()
    type(MPI_Datatype) :: datatype
    integer :: digits, error
    do digits = 1, 40
      call MPI_Type_create_f90_integer(digits, datatype, error)
      call described(datatype, error, max(selected_int_kind(digits), 0), MPI_COMBINER_F90_INTEGER, [digits], 'integer')
    end do
  end subroutine integers

  ! Bytes of a real kind; 0 if there is none. An x87 number takes 16.
  integer function bytes_of(kind)
    integer, intent(in) :: kind
    bytes_of = merge(0, merge(16, kind, kind == 10), kind < 0)
  end function bytes_of

  subroutine reals()
    integer, parameter :: ranges(10) = [1, 37, 38, 100, 307, 308, 4000, 4931, 4932, 9000]
    type(MPI_Datatype) :: datatype
    integer :: digits, i, error, bytes
    do digits = 1, 35
      bytes = bytes_of(selected_real_kind(digits))
      call MPI_Type_create_f90_real(digits, MPI_UNDEFINED, datatype, error)
      call described(datatype, error, bytes, MPI_COMBINER_F90_REAL, [digits, MPI_UNDEFINED], 'real digits')
      call MPI_Type_create_f90_complex(digits, MPI_UNDEFINED, datatype, error)
      call described(datatype, error, 2 * bytes, MPI_COMBINER_F90_COMPLEX, [digits, MPI_UNDEFINED], 'complex digits')
    end do
    do i = 1, size(ranges)
      bytes = bytes_of(selected_real_kind(r=ranges(i)))
      call MPI_Type_create_f90_real(MPI_UNDEFINED, ranges(i), datatype, error)
      call described(datatype, error, bytes, MPI_COMBINER_F90_REAL, [MPI_UNDEFINED, ranges(i)], 'real range')
      bytes = bytes_of(selected_real_kind(10, ranges(i)))
      call MPI_Type_create_f90_complex(10, ranges(i), datatype, error)
      call described(datatype, error, 2 * bytes, MPI_COMBINER_F90_COMPLEX, [10, ranges(i)], 'complex range')
    end do
    call MPI_Type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, datatype, error)
    call expect(error /= MPI_SUCCESS, 'neither digits nor range', 0)
  end subroutine reals

  subroutine handles()
    type(MPI_Datatype) :: datatype, again, other
    integer :: error
    call MPI_Type_create_f90_real(6, 30, datatype)
    call MPI_Type_create_f90_real(6, 30, again)
    call MPI_Type_create_f90_real(6, 31, other)
    call expect(datatype == again .and. datatype /= other, 'one handle for the same arguments', 0)
    call MPI_Type_create_f90_complex(6, 30, other)
    call expect(datatype /= other, 'a handle of its own', 0)
    again = datatype
    call MPI_Type_free(again, error)
    call expect(error /= MPI_SUCCESS, 'it cannot be freed', 0)
  end subroutine handles

  subroutine sizes()
    type(MPI_Datatype) :: datatype
    integer :: bytes, error
    do bytes = 1, 33
      call MPI_Type_match_size(MPI_TYPECLASS_INTEGER, bytes, datatype, error)
      call matched(datatype, error, any(bytes == [1, 2, 4, 8, 16]), bytes, 'MPI_INTEGER')
      call MPI_Type_match_size(MPI_TYPECLASS_REAL, bytes, datatype, error)
      call matched(datatype, error, any(bytes == [2, 4, 8, 16]), bytes, 'MPI_REAL')
      call MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, bytes, datatype, error)
      call matched(datatype, error, any(bytes == [4, 8, 16, 32]), bytes, 'MPI_COMPLEX')
    end do
  end subroutine sizes

  subroutine matched(datatype, error, exists, bytes, name)
    type(MPI_Datatype), intent(in) :: datatype
    integer, intent(in) :: error, bytes
    logical, intent(in) :: exists
    character(len=*), intent(in) :: name
    character(len=MPI_MAX_OBJECT_NAME) :: own
    character(len=2) :: digits
    integer :: length
    call expect((error == MPI_SUCCESS) .eqv. exists, name // ' of a size', bytes)
    if (.not. exists) return
    write (digits, '(i0)') bytes
    call MPI_Type_get_name(datatype, own, length)
    call expect(own(1:length) == name // trim(digits), name // ' has a name', bytes)
  end subroutine matched

  subroutine reductions()
    integer, parameter :: wide = selected_int_kind(18), long = selected_real_kind(12, 200)
    integer(kind=wide) :: number
    complex(kind=long) :: values(3)
    type(MPI_Datatype) :: datatype
    integer :: ranks
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    call MPI_Type_create_f90_integer(18, datatype)
    number = 10_wide**15 + rank
    call MPI_Allreduce(MPI_IN_PLACE, number, 1, datatype, MPI_MAX, MPI_COMM_WORLD)
    call expect(number == 10_wide**15 + ranks - 1, 'a maximum', 0)
    call MPI_Type_create_f90_complex(12, 200, datatype)
    values = cmplx(rank, -1, kind=long)
    call MPI_Allreduce(MPI_IN_PLACE, values, 3, datatype, MPI_SUM, MPI_COMM_WORLD)
    call expect(all(values == cmplx(ranks * (ranks - 1) / 2, -ranks, kind=long)), 'a sum', 0)
  end subroutine reductions

  subroutine files()
    type(MPI_Errhandler) :: handler
    integer(kind=MPI_ADDRESS_KIND) :: state
    integer :: error
    heard = 0
    call MPI_File_create_errhandler(on_error, handler)
    call MPI_File_set_errhandler(MPI_FILE_NULL, handler)
    call MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_QUOTA)
    call expect(heard == 1 .and. seen == MPI_ERR_QUOTA, 'the handler of a file', heard)
    state = 0
    call MPI_Register_datarep('mine', MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, no_extent, state, error)
    call expect(error == MPI_SUCCESS, 'a data representation', error)
    call MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN)
    call MPI_Errhandler_free(handler)
  end subroutine files
end program kinds
