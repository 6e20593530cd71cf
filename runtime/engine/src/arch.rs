//! What depends on the machine: x86-64 Linux.

use core::arch::asm;
use core::ffi::c_void;

/// System call numbers.
const SYS_RT_SIGPROCMASK: u64 = 14;
const SYS_CLONE: u64 = 56;
const SYS_EXIT: u64 = 60;
const SYS_EXIT_GROUP: u64 = 231;

/// How `rt_sigprocmask` changes the mask.
const SIG_SETMASK: u64 = 2;

/// A thread of the caller's process, as far as the kernel is concerned, which clears and wakes a
/// word when it ends. It has no thread-local data of its own, so it may run stealable code only.
const THREAD_FLAGS: u64 = 0x100 // CLONE_VM
    | 0x200 // CLONE_FS
    | 0x400 // CLONE_FILES
    | 0x800 // CLONE_SIGHAND
    | 0x1_0000 // CLONE_THREAD
    | 0x4_0000 // CLONE_SYSVSEM
    | 0x20_0000; // CLONE_CHILD_CLEARTID

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

/// Starts a thread that calls `run(argument)` on a stack that ends at `stack_end` and then ends.
/// The kernel sets `*alive` to 0, and wakes it as a shared futex, when the thread has ended.
/// Returns a negative error number when the kernel refuses.
///
/// # Safety
/// The stack is writable, large enough for `run`, 16-aligned at its end, and lives like `alive`
/// and `argument` until the thread has ended. `run` neither unwinds nor uses thread-local data.
pub(crate) unsafe fn start_thread(
    stack_end: *mut u8,
    alive: *mut u32,
    run: unsafe extern "C" fn(*const c_void),
    argument: *const c_void,
) -> i64 {
    let result: i64;
    // SAFETY: the parent's path only returns from the call; the new thread never leaves its
    // branch, uses its own stack, and finds its registers as they were.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, {argument}",
            "call {run}",
            "xor edi, edi",
            "mov eax, {exit}",
            "syscall",
            "ud2",
            "2:",
            exit = const SYS_EXIT,
            run = in(reg) run,
            argument = in(reg) argument,
            inlateout("rax") SYS_CLONE => result,
            in("rdi") THREAD_FLAGS,
            in("rsi") stack_end,
            in("rdx") 0,
            in("r10") alive,
            in("r8") 0,
            out("rcx") _,
            out("r11") _,
        );
    }
    result
}

/// A set of blocked signals.
pub(crate) struct Signals(u64);

/// Blocks all signals of the calling thread and returns what was blocked before.
pub(crate) fn block_signals() -> Signals {
    Signals(change_signals(!0))
}

/// Undoes [`block_signals`].
pub(crate) fn restore_signals(before: Signals) {
    change_signals(before.0);
}

/// Sets the mask of blocked signals and returns the one before.
fn change_signals(mask: u64) -> u64 {
    let mut before = 0_u64;
    // SAFETY: both masks are valid for the call; it does not fail with valid arguments.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") SYS_RT_SIGPROCMASK => _,
            in("rdi") SIG_SETMASK,
            in("rsi") &raw const mask,
            in("rdx") &raw mut before,
            in("r10") size_of::<u64>(),
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    before
}
