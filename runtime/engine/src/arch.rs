//! What depends on the machine: x86-64 Linux.

use core::arch::asm;

/// System call numbers.
const SYS_EXIT_GROUP: u64 = 231;

/// A clock that is cheap to read: cycles of a constant rate of the order of a few per nanosecond.
#[inline]
pub(crate) fn ticks() -> u64 {
    // SAFETY: every x86-64 machine has the instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Ticks that make about a microsecond on today's machines.
pub(crate) const TICKS_PER_US: u64 = 3000;

/// Ends the calling process.
pub(crate) fn exit_group(code: i32) -> ! {
    // SAFETY: the call does not return.
    unsafe {
        asm!(
            "syscall",
            in("rax") SYS_EXIT_GROUP,
            in("rdi") i64::from(code),
            options(noreturn, nostack)
        )
    }
}
