//! `MPI_Wtime` and `MPI_Wtick`.

use cohort_abi::Abi;
use cohort_base::clock::system::{ClockId, read};
use core::ffi::c_void;
use rustix::time::clock_getres;

/// `MPI_Wtime`: seconds of the monotonic clock, which all ranks of a node share.
///
/// # Safety
/// None; the type is that of the table's functions.
pub unsafe extern "C" fn wtime<A: Abi>(_caller: *const c_void) -> f64 {
    let now = read(ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// `MPI_Wtick`: the resolution of that clock, in seconds.
///
/// # Safety
/// None; the type is that of the table's functions.
pub unsafe extern "C" fn wtick<A: Abi>(_caller: *const c_void) -> f64 {
    let tick = clock_getres(ClockId::Monotonic);
    tick.tv_sec as f64 + tick.tv_nsec as f64 * 1e-9
}
