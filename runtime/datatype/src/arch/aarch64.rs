//! 64-bit ARM. Its C libraries copy as its processors like it, and nothing else is known to be faster.

use core::ptr::copy_nonoverlapping;

pub(crate) mod long_double;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Whether long runs are moved best by [`move_strings`].
#[inline]
pub(crate) fn moves_strings_best() -> bool {
    false
}

/// Whether copies take many times as long if the destination is some bytes ahead of the source in its page.
#[inline]
pub(crate) fn strings_wait_for_stores() -> bool {
    false
}

/// Whether [`move_lines`] may be called.
#[cfg(test)]
pub(crate) fn moves_by_vectors() -> bool {
    true
}

/// Moves `bytes` bytes.
///
/// # Safety
/// As `copy_nonoverlapping`.
#[inline]
pub(crate) unsafe fn move_strings(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { copy_nonoverlapping(from, to, bytes) };
}

/// Moves a run.
///
/// # Safety
/// As `copy_nonoverlapping`.
#[inline]
pub(crate) unsafe fn move_lines(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { copy_nonoverlapping(from, to, bytes) };
}
