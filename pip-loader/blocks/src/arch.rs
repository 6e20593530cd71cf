//! The address that a call of `free` comes from, which only its first instruction knows.

use core::arch::naked_asm;
use core::ffi::c_void;

/// `free(3)`
///
/// # Safety
/// `block` is one that is not freed yet, or null.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    naked_asm!("mov rsi, [rsp]", "jmp {}", sym super::free_called_by)
}

/// `realloc(3)`
///
/// # Safety
/// As for [`free`].
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    naked_asm!("mov rdx, [rsp]", "jmp {}", sym super::realloc_called_by)
}
