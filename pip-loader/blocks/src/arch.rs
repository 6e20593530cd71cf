//! The address that a call of `free` comes from, which only its first instruction knows.

use core::ffi::c_void;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64::called_from;
#[cfg(target_arch = "x86_64")]
use x86_64::called_from;

/// `free(3)`
///
/// # Safety
/// `block` is one that is not freed yet, or null.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    called_from!(1, super::free_called_by)
}

/// `realloc(3)`
///
/// # Safety
/// As for [`free`].
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    called_from!(2, super::realloc_called_by)
}
