//! Statuses, weights and indices between Fortran and C.

use crate::{A, sentinel};
use cohort_abi::{Abi, Constants, neutral};
use core::ffi::c_int;

/// `ierror`, which a caller of `mpi_f08` may leave out.
#[repr(transparent)]
pub struct Ierror<'a>(Option<&'a mut c_int>);

impl<'a> From<&'a mut c_int> for Ierror<'a> {
    #[inline]
    fn from(code: &'a mut c_int) -> Self {
        Self(Some(code))
    }
}

impl Ierror<'_> {
    /// Stores the code of C's function.
    #[inline]
    pub fn set(self, code: c_int) {
        if let Some(ierror) = self.0 {
            *ierror = code;
        }
    }
}

type Status = <A as Abi>::Status;

/// C's status is Fortran's, in these ABIs.
const _: () = assert!(size_of::<Status>() == size_of::<[c_int; A::F_STATUS_SIZE]>());

/// A status.
#[inline]
pub fn status(status: *mut c_int) -> *mut Status {
    if sentinel::is_status_ignore(status) {
        return core::ptr::without_provenance_mut(A::STATUS_IGNORE);
    }
    status.cast()
}

/// An array of statuses.
#[inline]
pub fn statuses(statuses: *mut c_int) -> *mut Status {
    if sentinel::is_statuses_ignore(statuses) {
        return core::ptr::without_provenance_mut(A::STATUSES_IGNORE);
    }
    statuses.cast()
}

/// The weights of a distributed graph's edges.
pub fn weights(weights: *mut c_int) -> *mut c_int {
    let [unweighted, empty] = sentinel::weights_of_c();
    if sentinel::is_unweighted(weights) {
        return unweighted;
    }
    if sentinel::is_weights_empty(weights) {
        return empty;
    }
    weights
}

/// The error codes of spawned processes.
pub fn errcodes(errcodes: *mut c_int) -> *mut c_int {
    if sentinel::is_errcodes_ignore(errcodes) {
        return core::ptr::without_provenance_mut(A::ERRCODES_IGNORE);
    }
    errcodes
}

/// What an index or a number of indices is where C's function has failed and written none.
pub const UNDEFINED: c_int = neutral::UNDEFINED;

/// Numbers a request from 1 on (MPI 3.7.5), unless the index is `MPI_UNDEFINED`.
///
/// # Safety
/// `index` is valid for reads and writes.
pub unsafe fn index_out(index: *mut c_int) {
    // SAFETY: as the caller promises.
    unsafe {
        if *index >= 0 {
            *index += 1;
        }
    }
}

/// Numbers requests from 1 on.
///
/// # Safety
/// `indices` is valid for `count` reads and writes, if that is a number.
pub unsafe fn indices_out(indices: *mut c_int, count: c_int) {
    for place in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: as the caller promises.
        unsafe { index_out(indices.add(place)) };
    }
}

/// `.TRUE.` of gfortran. (Intel's compilers look at the lowest bit, and make -1.)
pub const TRUE: c_int = 1;

const _: () = assert!(neutral::SUCCESS == 0);
