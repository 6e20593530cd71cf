//! x86-64.

/// The body of a naked function that goes on at another one, with the address it was called from after so many
/// arguments.
macro_rules! called_from {
    (1, $function:path) => {
        core::arch::naked_asm!("mov rsi, [rsp]", "jmp {}", sym $function)
    };
    (2, $function:path) => {
        core::arch::naked_asm!("mov rdx, [rsp]", "jmp {}", sym $function)
    };
}
pub(super) use called_from;
