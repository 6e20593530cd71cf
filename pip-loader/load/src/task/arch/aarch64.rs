//! 64-bit ARM.

use core::arch::{asm, global_asm};

/// A system call without libc: no `errno`, hence no thread-local data. Returns the
/// kernel's answer, `-errno` for a failure.
///
/// # Safety
/// The call's own conditions.
pub unsafe fn syscall(number: libc::c_long, arguments: [usize; 5]) -> isize {
    let [a, b, c, d, e] = arguments;
    let result;
    // SAFETY: the kernel changes x0 only; the rest is the caller's promise.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") a as isize => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e,
            options(nostack),
        );
    }
    result
}

/// `clone(flags)`; the new task calls `entry(argument)` on the stack that ends at
/// `stack`. Returns the new task's pid or `-errno` to the caller.
///
/// # Safety
/// `stack` is 16-byte aligned and ends enough writable memory that nobody else uses;
/// `entry` never returns and may run with the caller's thread pointer.
pub unsafe fn clone_onto(
    flags: usize,
    stack: usize,
    entry: unsafe extern "C" fn(*const ()) -> !,
    argument: *const (),
) -> isize {
    let result;
    // SAFETY: in the parent only x0 changes. The child leaves this block by a call that does not return, on its own
    // stack.
    unsafe {
        asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, #0",
            "mov x30, #0",
            "mov x0, {argument}",
            "blr {entry}",
            "brk #1",
            "2:",
            in("x8") libc::SYS_clone,
            inlateout("x0") flags as isize => result,
            in("x1") stack, in("x2") 0, in("x3") 0, in("x4") 0,
            argument = in(reg) argument, entry = in(reg) entry,
            out("x30") _,
        );
    }
    result
}

/// Enters a program as the kernel does after `execve`.
///
/// # Safety
/// `stack` is a complete initial stack (argument count first), `entry` the program's
/// entry point.
pub unsafe fn enter(entry: usize, stack: usize) -> ! {
    // SAFETY: nothing of the old stack is used any more; x0 = 0 says that there is no function to register with
    // `atexit`, as the ABI wants.
    unsafe {
        asm!(
            "mov sp, x9",
            "mov x0, #0",
            "mov x29, #0",
            "mov x30, #0",
            "br x16",
            in("x9") stack,
            in("x16") entry,
            options(noreturn),
        );
    }
}

global_asm!(
    ".pushsection .text",
    ".hidden cohort_signal_return",
    ".globl cohort_signal_return",
    ".type cohort_signal_return, @function",
    ".balign 4",
    "cohort_signal_return:",
    "mov x8, #{number}",
    "svc #0",
    "brk #1",
    ".popsection",
    number = const libc::SYS_rt_sigreturn,
);

unsafe extern "C" {
    /// Return address of a signal handler: `rt_sigreturn`. Nothing else may go there.
    pub fn cohort_signal_return();
}

/// Has descriptor `target` be `source`, which may be the same.
pub fn duplicate(source: usize, target: usize) -> isize {
    match source == target {
        // The call that this machine's kernel has refuses that.
        true => super::own(libc::SYS_fcntl, [source, libc::F_SETFD as usize, 0, 0, 0]),
        false => super::own(libc::SYS_dup3, [source, target, 0, 0, 0]),
    }
}
