//! 64-bit ARM.

use super::super::{STUB_BYTES, STUBS, on_fault};
use core::arch::naked_asm;
use core::ffi::c_void;

/// G2 to G4: calls `run(argument)` with the stack pointer in `*stack`. Returns 0, or what `on_fault` says.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn enter(
    run: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
    stack: *mut u64,
) -> u64 {
    naked_asm!(
        "stp x29, x30, [sp, #-176]!",
        "stp x19, x20, [sp, #16]",
        "stp x21, x22, [sp, #32]",
        "stp x23, x24, [sp, #48]",
        "stp x25, x26, [sp, #64]",
        "stp x27, x28, [sp, #80]",
        "stp d8, d9, [sp, #96]",
        "stp d10, d11, [sp, #112]",
        "stp d12, d13, [sp, #128]",
        "stp d14, d15, [sp, #144]",
        "str x2, [sp, #160]",
        "mov x29, sp",
        "str x29, [x2]",
        "mov x9, x0",
        "mov x0, x1",
        "blr x9",
        "mov x0, #0",
        "b {leave}",
        leave = sym leave,
    )
}

/// The end of [`enter`], with its stack pointer and its result.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn leave() {
    naked_asm!(
        "ldr x2, [sp, #160]",
        "str xzr, [x2]",
        "ldp d14, d15, [sp, #144]",
        "ldp d12, d13, [sp, #128]",
        "ldp d10, d11, [sp, #112]",
        "ldp d8, d9, [sp, #96]",
        "ldp x27, x28, [sp, #80]",
        "ldp x25, x26, [sp, #64]",
        "ldp x23, x24, [sp, #48]",
        "ldp x21, x22, [sp, #32]",
        "ldp x19, x20, [sp, #16]",
        "ldp x29, x30, [sp], #176",
        "ret",
    )
}

/// The handlers that the kernel calls, `STUB_BYTES` each from the first multiple of that on. Each one says where it is.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn stubs() {
    naked_asm!(
        ".balign {bytes}",
        ".rept {count}",
        "adr x3, .",
        "b 2f",
        ".endr",
        "2:",
        "b {on_fault}",
        bytes = const STUB_BYTES,
        count = const STUBS,
        on_fault = sym on_fault,
    )
}
