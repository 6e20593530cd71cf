//! Error codes that the program adds, in the MPICH ABI: they lie above the ABI's own `MPI_ERR_LASTCODE`.

use crate::neutral;
use core::ffi::c_int;

const FIRST_ADDED: i32 = 0x4000_0000;

/// Reads an error code that is no class of the standard.
pub(crate) fn read(value: c_int) -> i32 {
    if value < FIRST_ADDED {
        neutral::INVALID
    } else {
        value - FIRST_ADDED + neutral::FIRST_ADDED_ERROR
    }
}

/// Writes an error code that is no class of the standard; `unknown` if it is none at all.
pub(crate) fn write(value: i32, unknown: c_int) -> c_int {
    if value < neutral::FIRST_ADDED_ERROR {
        return unknown;
    }
    value - neutral::FIRST_ADDED_ERROR + FIRST_ADDED
}
