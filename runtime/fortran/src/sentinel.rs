//! Constants of Fortran that are variables in common blocks: `MPI_BOTTOM`, `MPI_IN_PLACE`, `MPI_STATUS_IGNORE`, ...
//! The names are those of MPICH's blocks.
#![allow(non_upper_case_globals)]

use crate::A;
use crate::common::{Block, blocks};
use cohort_abi::Constants;
use cohort_arch::linked_address;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

const STATUS: usize = A::F_STATUS_SIZE;

// Those of `mpi_f08`, by the names that MPICH gives them.
blocks! {
    /// `MPI_BOTTOM`
    MPIR_F08_MPI_BOTTOM 1;
    /// `MPI_IN_PLACE`
    MPIR_F08_MPI_IN_PLACE 1;
    /// `MPI_BUFFER_AUTOMATIC`
    MPIR_F08_MPI_BUFFER_AUTOMATIC 1;
    /// `MPI_UNWEIGHTED`
    __mpi_f08_link_constants_MOD_mpi_unweighted 1;
    /// `MPI_WEIGHTS_EMPTY`
    __mpi_f08_link_constants_MOD_mpi_weights_empty 1;
    /// `MPI_ERRCODES_IGNORE`
    __mpi_f08_link_constants_MOD_mpi_errcodes_ignore 1;
    /// `MPI_ARGV_NULL`
    __mpi_f08_link_constants_MOD_mpi_argv_null 1;
    /// `MPI_ARGVS_NULL`
    __mpi_f08_link_constants_MOD_mpi_argvs_null 1;
}

blocks! {
    /// `MPI_BOTTOM`, `MPI_IN_PLACE`, `MPI_STATUS_IGNORE`
    mpipriv1_ 2 + STATUS;
    /// `MPI_STATUSES_IGNORE`, `MPI_ERRCODES_IGNORE`
    mpipriv2_ STATUS + 1;
    /// `MPI_ARGVS_NULL`, `MPI_ARGV_NULL`: a character each
    mpiprivc_ 1;
    /// `MPI_UNWEIGHTED`
    mpifcmb5_ 1;
    /// `MPI_WEIGHTS_EMPTY`
    mpifcmb9_ 1;
    /// `MPI_BUFFER_AUTOMATIC`
    mpifcmba_ 1;
}

const INTEGER: usize = size_of::<c_int>();

/// A choice buffer for C.
#[inline]
pub fn buffer(buffer: *const c_void) -> *const c_void {
    let bottom = linked_address!(mpipriv1_);
    let sentinel = match buffer.addr() {
        address if address == bottom => A::BOTTOM,
        address if address == bottom + INTEGER => A::IN_PLACE,
        address if address == linked_address!(mpifcmba_) => A::BUFFER_AUTOMATIC,
        address if address == linked_address!(MPIR_F08_MPI_BOTTOM) => A::BOTTOM,
        address if address == linked_address!(MPIR_F08_MPI_IN_PLACE) => A::IN_PLACE,
        address if address == linked_address!(MPIR_F08_MPI_BUFFER_AUTOMATIC) => A::BUFFER_AUTOMATIC,
        _ => return buffer,
    };
    core::ptr::without_provenance(sentinel)
}

/// Whether an argument is `MPI_STATUS_IGNORE`.
#[inline]
pub fn is_status_ignore(argument: *const c_int) -> bool {
    argument.addr() == linked_address!(mpipriv1_) + 2 * INTEGER
        || argument.addr() == linked_address!(MPIR_F08_MPI_STATUS_IGNORE_OBJ)
}

/// Whether an argument is `MPI_STATUSES_IGNORE`.
#[inline]
pub fn is_statuses_ignore(argument: *const c_int) -> bool {
    argument.addr() == linked_address!(mpipriv2_)
        || argument.addr() == linked_address!(MPIR_F08_MPI_STATUSES_IGNORE_OBJ)
}

/// Whether an argument is `MPI_ERRCODES_IGNORE`.
pub fn is_errcodes_ignore(argument: *const c_int) -> bool {
    argument.addr() == linked_address!(mpipriv2_) + STATUS * INTEGER
        || argument.addr() == linked_address!(__mpi_f08_link_constants_MOD_mpi_errcodes_ignore)
}

/// Whether an argument is `MPI_ARGVS_NULL`.
pub fn is_argvs_null<T>(argument: *const T) -> bool {
    argument.addr() == linked_address!(mpiprivc_)
        || argument.addr() == linked_address!(__mpi_f08_link_constants_MOD_mpi_argvs_null)
}

/// Whether an argument is `MPI_ARGV_NULL`.
pub fn is_argv_null<T>(argument: *const T) -> bool {
    argument.addr() == linked_address!(mpiprivc_) + 1
        || argument.addr() == linked_address!(__mpi_f08_link_constants_MOD_mpi_argv_null)
}

/// Whether an argument is `MPI_UNWEIGHTED`.
pub fn is_unweighted(argument: *const c_int) -> bool {
    argument.addr() == linked_address!(mpifcmb5_)
        || argument.addr() == linked_address!(__mpi_f08_link_constants_MOD_mpi_unweighted)
}

/// Whether an argument is `MPI_WEIGHTS_EMPTY`.
pub fn is_weights_empty(argument: *const c_int) -> bool {
    argument.addr() == linked_address!(mpifcmb9_)
        || argument.addr() == linked_address!(__mpi_f08_link_constants_MOD_mpi_weights_empty)
}

unsafe extern "C" {
    static MPI_F_STATUS_IGNORE: AtomicPtr<c_void>;
    static MPI_F_STATUSES_IGNORE: AtomicPtr<c_void>;
    static MPI_UNWEIGHTED: AtomicPtr<c_int>;
    static MPI_WEIGHTS_EMPTY: AtomicPtr<c_int>;
}

/// What C calls `MPI_UNWEIGHTED` and `MPI_WEIGHTS_EMPTY`.
pub fn weights_of_c() -> [*mut c_int; 2] {
    // SAFETY: variables of the C library.
    unsafe { [&MPI_UNWEIGHTED, &MPI_WEIGHTS_EMPTY] }.map(|variable| variable.load(Ordering::Relaxed))
}

/// Tells C where Fortran's `MPI_STATUS_IGNORE` and `MPI_STATUSES_IGNORE` are (MPI 19.3.5).
extern "C" fn tell_c() {
    let ignore = [linked_address!(mpipriv1_) + 2 * INTEGER, linked_address!(mpipriv2_)];
    // SAFETY: variables of the C library.
    let variables = unsafe { [&MPI_F_STATUS_IGNORE, &MPI_F_STATUSES_IGNORE] };
    for (variable, address) in variables.into_iter().zip(ignore) {
        variable.store(core::ptr::with_exposed_provenance_mut(address), Ordering::Relaxed);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = tell_c;
