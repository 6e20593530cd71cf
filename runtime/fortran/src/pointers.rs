//! The specific names of procedures whose `baseptr` is a `TYPE(C_PTR)` (MPI-4.1 section 19.1.5). Fortran passes it as
//! it passes the address-sized integer of the procedures without `_CPTR`, so they are the same functions.

use crate::generated::procedures;
use crate::names;

names!(procedures::alloc_mem: mpi_alloc_mem_cptr_ mpi_alloc_mem_cptr mpi_alloc_mem_cptr__ MPI_ALLOC_MEM_CPTR
    pmpi_alloc_mem_cptr_ pmpi_alloc_mem_cptr pmpi_alloc_mem_cptr__ PMPI_ALLOC_MEM_CPTR);
names!(procedures::win_allocate: mpi_win_allocate_cptr_ mpi_win_allocate_cptr mpi_win_allocate_cptr__
    MPI_WIN_ALLOCATE_CPTR pmpi_win_allocate_cptr_ pmpi_win_allocate_cptr pmpi_win_allocate_cptr__
    PMPI_WIN_ALLOCATE_CPTR);
names!(procedures::win_allocate_shared: mpi_win_allocate_shared_cptr_ mpi_win_allocate_shared_cptr
    mpi_win_allocate_shared_cptr__ MPI_WIN_ALLOCATE_SHARED_CPTR pmpi_win_allocate_shared_cptr_
    pmpi_win_allocate_shared_cptr pmpi_win_allocate_shared_cptr__ PMPI_WIN_ALLOCATE_SHARED_CPTR);
names!(procedures::win_shared_query: mpi_win_shared_query_cptr_ mpi_win_shared_query_cptr mpi_win_shared_query_cptr__
    MPI_WIN_SHARED_QUERY_CPTR pmpi_win_shared_query_cptr_ pmpi_win_shared_query_cptr pmpi_win_shared_query_cptr__
    PMPI_WIN_SHARED_QUERY_CPTR);
