! Sections of arrays with datatypes that leave elements out, or have their data beyond their extent (MPI 19.1.12).
program sections_apart
    use mpi_f08
    implicit none
    integer :: me, count
    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, me)
    call MPI_Comm_size(MPI_COMM_WORLD, count)
    call gathers()
    call of_parametrised()
    call put_meanwhile()
    call MPI_Finalize()
    print '(a, i0)', 'done ', me
contains
    subroutine check(holds, what)
        logical, intent(in) :: holds
        character(*), intent(in) :: what
        if (holds) return
        print '(a, i0, 2a)', 'rank ', me, ': ', what
        call MPI_Abort(MPI_COMM_WORLD, 1)
    end subroutine

    ! A column of a transposed matrix: two elements with others between them, and an extent of one.
    subroutine gathers()
        integer, asynchronous :: whole(4 * count), mine(2)
        type(MPI_Datatype) :: apart, column
        type(MPI_Request) :: request
        integer :: i
        call MPI_Type_vector(2, 1, count, MPI_INTEGER, apart)
        call MPI_Type_create_resized(apart, 0_MPI_ADDRESS_KIND, 4_MPI_ADDRESS_KIND, column)
        call MPI_Type_commit(column)
        whole = 0
        mine = [10 * me + 1, 10 * me + 2]
        call MPI_Igather(mine, 2, MPI_INTEGER, whole(1:4 * count:2), 1, column, 0, MPI_COMM_WORLD, request)
        call MPI_Wait(request, MPI_STATUS_IGNORE)
        do i = 0, count - 1
            if (me > 0) exit
            call check(whole(1 + 2 * i) == 10 * i + 1, 'a first element lies elsewhere')
            call check(whole(1 + 2 * (i + count)) == 10 * i + 2, 'a second element lies elsewhere')
            call check(whole(2 + 2 * i) == 0, 'something lies between them')
        end do
        call MPI_Type_free(column)
        call MPI_Type_free(apart)
    end subroutine

    subroutine of_parametrised()
        real(8) :: array(20)
        integer :: i
        type(MPI_Datatype) :: real8, two
        call MPI_Type_create_f90_real(15, MPI_UNDEFINED, real8)
        call MPI_Type_contiguous(2, real8, two)
        call MPI_Type_commit(two)
        array = [(real(me * 100 + i, 8), i = 1, 20)]
        if (me == 0) then
            call MPI_Send(array(1:20:2), 5, two, 1, 1, MPI_COMM_WORLD)
        else if (me == 1) then
            call MPI_Recv(array(2:20:2), 5, two, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
            call check(array(2) == 1 .and. array(20) == 19 .and. array(19) == 119, 'reals came elsewhere')
        end if
        call MPI_Type_free(two)
    end subroutine

    ! Elements that a receive leaves out change while it waits.
    subroutine put_meanwhile()
        integer, asynchronous :: window(8)
        integer :: word(2)
        type(MPI_Win) :: win
        type(MPI_Datatype) :: apart
        window = [1, 2, 3, 4, 5, 6, 7, 8]
        call MPI_Win_create(window, 32_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
        call MPI_Type_vector(2, 1, 2, MPI_INTEGER, apart)
        call MPI_Type_commit(apart)
        if (me == 0) then
            call execute_command_line('sleep 0.3')
            word = [33, 44]
            call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win)
            call MPI_Put(word, 1, MPI_INTEGER, 1, 2_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win)
            call MPI_Win_unlock(1, win)
            call MPI_Send(word, 2, MPI_INTEGER, 1, 2, MPI_COMM_WORLD)
        else if (me == 1) then
            call MPI_Recv(window(1:8:2), 1, apart, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
        end if
        call MPI_Barrier(MPI_COMM_WORLD)
        if (me == 1) then
            call MPI_F_sync_reg(window)
            call check(window(1) == 33 .and. window(5) == 44, 'the message came elsewhere')
            call check(window(3) == 33, 'what was put is lost')
        end if
        call MPI_Type_free(apart)
        call MPI_Win_free(win)
    end subroutine
end program
