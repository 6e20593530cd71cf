//! 64-bit ARM.

/// The body of a naked function that goes on at another one, with the address it was called from after so many
/// arguments.
macro_rules! called_from {
    (1, $function:path) => {
        core::arch::naked_asm!("mov x1, x30", "b {}", sym $function)
    };
    (2, $function:path) => {
        core::arch::naked_asm!("mov x2, x30", "b {}", sym $function)
    };
}
pub(super) use called_from;
