//! x86-64.

use core::arch::{asm, global_asm};

/// A system call without libc: no `errno`, hence no thread-local data. Returns the
/// kernel's answer, `-errno` for a failure.
///
/// # Safety
/// The call's own conditions.
pub unsafe fn syscall(number: libc::c_long, arguments: [usize; 5]) -> isize {
    let [a, b, c, d, e] = arguments;
    let result;
    // SAFETY: the kernel clobbers rcx and r11 only; the rest is the caller's promise.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e,
            lateout("rcx") _, lateout("r11") _,
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
    // SAFETY: in the parent only rax, rcx and r11 change. The child leaves this block
    // by a call that does not return, on its own stack.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone => result,
            in("rdi") flags, in("rsi") stack, in("rdx") 0, in("r10") 0, in("r8") 0,
            in("r12") argument, in("r13") entry,
            lateout("rcx") _, lateout("r11") _,
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
    // SAFETY: nothing of the old stack is used any more; rdx = 0 says that there is no
    // function to register with `atexit`, as the ABI wants.
    unsafe {
        asm!(
            "mov rsp, rcx",
            "xor edx, edx",
            "xor ebp, ebp",
            "jmp rax",
            in("rcx") stack,
            in("rax") entry,
            options(noreturn),
        );
    }
}

global_asm!(
    ".pushsection .text",
    ".hidden cohort_signal_return",
    ".globl cohort_signal_return",
    ".type cohort_signal_return, @function",
    "cohort_signal_return:",
    "mov eax, {number}",
    "syscall",
    "ud2",
    ".popsection",
    number = const libc::SYS_rt_sigreturn,
);

unsafe extern "C" {
    /// Return address of a signal handler: `rt_sigreturn`. Nothing else may go there.
    pub fn cohort_signal_return();
}

/// Has descriptor `target` be `source`, which may be the same.
pub fn duplicate(source: usize, target: usize) -> isize {
    super::own(libc::SYS_dup2, [source, target, 0, 0, 0])
}
