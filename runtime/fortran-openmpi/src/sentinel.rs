//! Constants of Fortran that are variables in common blocks: `MPI_BOTTOM`, `MPI_IN_PLACE`, `MPI_STATUS_IGNORE`, ...
//! The names are those of Open MPI's blocks, of which `mpi_f08` has the same.
#![allow(non_upper_case_globals)]

use crate::A;
use crate::common::{Block, blocks};
use cohort_abi::Constants;
use cohort_arch::linked_address;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

const STATUS: usize = A::F_STATUS_SIZE;

blocks! {
    /// `MPI_BOTTOM`
    mpi_fortran_bottom_ 1;
    /// `MPI_IN_PLACE`
    mpi_fortran_in_place_ 1;
    /// `MPI_ARGV_NULL`
    mpi_fortran_argv_null_ 1;
    /// `MPI_ARGVS_NULL`
    mpi_fortran_argvs_null_ 1;
    /// `MPI_ERRCODES_IGNORE`
    mpi_fortran_errcodes_ignore_ 1;
    /// `MPI_STATUS_IGNORE`
    mpi_fortran_status_ignore_ STATUS;
    /// `MPI_STATUSES_IGNORE`
    mpi_fortran_statuses_ignore_ STATUS;
    /// `MPI_UNWEIGHTED`
    mpi_fortran_unweighted_ 1;
    /// `MPI_WEIGHTS_EMPTY`
    mpi_fortran_weights_empty_ 1;
}

/// A choice buffer for C.
#[inline]
pub fn buffer(buffer: *const c_void) -> *const c_void {
    let sentinel = match buffer.addr() {
        address if address == linked_address!(mpi_fortran_bottom_) => A::BOTTOM,
        address if address == linked_address!(mpi_fortran_in_place_) => A::IN_PLACE,
        _ => return buffer,
    };
    core::ptr::without_provenance(sentinel)
}

macro_rules! comparisons {
    ($($name:ident $block:ident $constant:ident;)*) => {$(
        #[doc = concat!("Whether an argument is `", stringify!($constant), "`.")]
        #[inline]
        pub fn $name<T>(argument: *const T) -> bool {
            argument.addr() == linked_address!($block)
        }
    )*};
}

comparisons! {
    is_status_ignore mpi_fortran_status_ignore_ MPI_STATUS_IGNORE;
    is_statuses_ignore mpi_fortran_statuses_ignore_ MPI_STATUSES_IGNORE;
    is_errcodes_ignore mpi_fortran_errcodes_ignore_ MPI_ERRCODES_IGNORE;
    is_argvs_null mpi_fortran_argvs_null_ MPI_ARGVS_NULL;
    is_argv_null mpi_fortran_argv_null_ MPI_ARGV_NULL;
    is_unweighted mpi_fortran_unweighted_ MPI_UNWEIGHTED;
    is_weights_empty mpi_fortran_weights_empty_ MPI_WEIGHTS_EMPTY;
}

/// What C calls `MPI_UNWEIGHTED` and `MPI_WEIGHTS_EMPTY`.
pub fn weights_of_c() -> [*mut c_int; 2] {
    [A::UNWEIGHTED, A::WEIGHTS_EMPTY].map(core::ptr::without_provenance_mut)
}

unsafe extern "C" {
    static MPI_F_STATUS_IGNORE: AtomicPtr<c_void>;
    static MPI_F_STATUSES_IGNORE: AtomicPtr<c_void>;
    static MPI_F08_STATUS_IGNORE: AtomicPtr<c_void>;
    static MPI_F08_STATUSES_IGNORE: AtomicPtr<c_void>;
}

/// Tells C where Fortran's `MPI_STATUS_IGNORE` and `MPI_STATUSES_IGNORE` are (MPI 19.3.5).
extern "C" fn tell_c() {
    let one = linked_address!(mpi_fortran_status_ignore_);
    let several = linked_address!(mpi_fortran_statuses_ignore_);
    // SAFETY: variables of the C library.
    let variables = unsafe {
        [
            (&MPI_F_STATUS_IGNORE, one),
            (&MPI_F_STATUSES_IGNORE, several),
            (&MPI_F08_STATUS_IGNORE, one),
            (&MPI_F08_STATUSES_IGNORE, several),
        ]
    };
    for (variable, address) in variables {
        variable.store(core::ptr::with_exposed_provenance_mut(address), Ordering::Relaxed);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = tell_c;
