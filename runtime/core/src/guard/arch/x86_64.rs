//! x86-64.

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
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "push rdx",
        "mov [rdx], rsp",
        "mov rax, rdi",
        "mov rdi, rsi",
        "call rax",
        "xor eax, eax",
        "jmp {leave}",
        leave = sym leave,
    )
}

/// The end of [`enter`], with its stack pointer and its result.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn leave() {
    naked_asm!(
        "pop rdx",
        "mov qword ptr [rdx], 0",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

/// The handlers that the kernel calls, `STUB_BYTES` each from the first multiple of that on. The address that each
/// one's call leaves tells which it was.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn stubs() {
    naked_asm!(
        ".balign {bytes}, 0x90",
        ".rept {count}",
        "call 2f",
        ".balign {bytes}, 0xcc",
        ".endr",
        "2:",
        "pop rcx",
        "jmp {on_fault}",
        bytes = const STUB_BYTES,
        count = const STUBS,
        on_fault = sym on_fault,
    )
}
