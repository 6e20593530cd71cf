//! x86-64.

use super::super::{Combine, ahead, each};

cpufeatures::new!(avx512, "avx512f", "avx512bw", "avx512dq", "avx512vl");
cpufeatures::new!(avx2, "avx2");

/// Applies an operation to more than `FEW` elements.
///
/// # Safety
/// As `Kernel`, for elements of type `T`.
#[inline(never)]
pub(crate) unsafe fn apply<T: Copy, O: Combine<T>>(input: *const u8, inout: *mut u8, count: usize) {
    // SAFETY: the caller's promise; the machine has these instructions.
    unsafe {
        if avx512::get() {
            in_512_bits::<T, O>(input, inout, count);
        } else if avx2::get() {
            in_256_bits::<T, O>(input, inout, count);
        } else {
            each::<T, O>(input, inout, count);
        }
    }
}

/// # Safety
/// As [`apply`], on a machine that has the instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn in_512_bits<T: Copy, O: Combine<T>>(input: *const u8, inout: *mut u8, count: usize) {
    // SAFETY: the caller's promise.
    unsafe { ahead::<T, O>(input, inout, count) }
}

/// # Safety
/// As [`apply`], on a machine that has the instructions.
#[target_feature(enable = "avx2")]
unsafe fn in_256_bits<T: Copy, O: Combine<T>>(input: *const u8, inout: *mut u8, count: usize) {
    // SAFETY: the caller's promise.
    unsafe { ahead::<T, O>(input, inout, count) }
}
