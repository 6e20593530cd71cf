//! Error codes that the program adds: they lie above the ABI's own `MPI_ERR_LASTCODE`, in the runtime above its.

use crate::neutral;
use core::ffi::c_int;

/// Reads an error code that is no class of the standard, in an ABI with this last code.
pub(crate) fn read(value: c_int, last: c_int) -> i32 {
    let added = i64::from(value) - i64::from(last) - 1 + i64::from(neutral::FIRST_ADDED_ERROR);
    match i32::try_from(added) {
        Ok(added) if added >= neutral::FIRST_ADDED_ERROR => added,
        _ => neutral::INVALID,
    }
}

/// Writes an error code that the program has added, in an ABI with this last code.
pub(crate) fn write(value: i32, last: c_int) -> c_int {
    (value - neutral::FIRST_ADDED_ERROR).saturating_add(last + 1)
}
