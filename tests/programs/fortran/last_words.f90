! What ranks have printed comes though rank 0 ends the job.
program last_words
    use mpi
    implicit none
    integer :: rank, ierror

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    print '(a,i0,a)', 'rank ', rank, ': before'
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    if (rank == 0) call MPI_Abort(MPI_COMM_WORLD, 3, ierror)
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    call MPI_Finalize(ierror)
end program last_words
