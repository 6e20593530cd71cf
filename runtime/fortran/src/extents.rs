//! Where the elements of a datatype lie.

use crate::A;
use cohort_abi::Abi;
use core::ffi::c_int;
use core::ops::Range;

type Datatype = <A as Abi>::Datatype;

// By the names that no tool counts: the program has not called these.
unsafe extern "C" {
    fn PMPI_Type_get_extent_c(datatype: Datatype, lb: *mut i64, extent: *mut i64) -> c_int;
    fn PMPI_Type_get_true_extent_c(datatype: Datatype, lb: *mut i64, extent: *mut i64) -> c_int;
}

/// MPI's code as a result.
pub fn checked(code: c_int) -> Result<(), c_int> {
    if code == 0 { Ok(()) } else { Err(code) }
}

/// Lower bound and extent of a datatype.
///
/// # Errors
/// MPI's error code, after the error handler.
pub fn extent_of(datatype: Datatype) -> Result<(i64, i64), c_int> {
    let (mut low, mut extent) = (0, 0);
    // SAFETY: a handle of the program's, and places for what MPI stores.
    checked(unsafe { PMPI_Type_get_extent_c(datatype, &mut low, &mut extent) })?;
    Ok((low, extent))
}

/// The same without what resizing has added.
///
/// # Errors
/// MPI's error code, after the error handler.
pub fn true_extent_of(datatype: Datatype) -> Result<(i64, i64), c_int> {
    let (mut low, mut extent) = (0, 0);
    // SAFETY: a handle of the program's, and places for what MPI stores.
    checked(unsafe { PMPI_Type_get_true_extent_c(datatype, &mut low, &mut extent) })?;
    Ok((low, extent))
}

/// The extent of a datatype, and the bytes that `count` of it take from the address of the first on.
///
/// # Errors
/// MPI's error code, after the error handler.
pub fn span(count: i64, datatype: Datatype) -> Result<(i64, Range<i64>), c_int> {
    let (_, extent) = extent_of(datatype)?;
    let (true_low, true_extent) = true_extent_of(datatype)?;
    let last = extent.saturating_mul(count - 1).saturating_add(true_low);
    Ok((extent, true_low..last.saturating_add(true_extent)))
}
