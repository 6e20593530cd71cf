//! 64-bit ARM: every machine has vectors of 128 bits, and no wider ones are looked for.

use super::super::{Combine, ahead};

/// Applies an operation to more than `FEW` elements.
///
/// # Safety
/// As `Kernel`, for elements of type `T`.
#[inline(never)]
pub(crate) unsafe fn apply<T: Copy, O: Combine<T>>(input: *const u8, inout: *mut u8, count: usize) {
    // SAFETY: the caller's promise.
    unsafe { ahead::<T, O>(input, inout, count) }
}
