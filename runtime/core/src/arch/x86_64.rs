//! x86-64.

use super::{THREAD_FLAGS, system_call};
use core::arch::asm;
use core::ffi::c_void;
use linux_raw_sys::general as linux;

const SYS_RT_SIGRETURN: u64 = linux::__NR_rt_sigreturn as u64;
const SYS_EPOLL_WAIT: u64 = linux::__NR_epoll_wait as u64;
const SYS_CLONE: u64 = linux::__NR_clone as u64;
const SYS_EXIT: u64 = linux::__NR_exit as u64;

/// Numbers of calls that wait and that not every machine's kernel has.
pub const POLL: Option<u32> = Some(linux::__NR_poll);
/// `epoll_wait`.
pub const EPOLL_WAIT: Option<u32> = Some(linux::__NR_epoll_wait);
/// `pause`.
pub const PAUSE: Option<u32> = Some(linux::__NR_pause);

/// Lengths of [`waiting_call`], and of its last two instructions up to the system call.
const WAITING_CALL_BYTES: u64 = 37;
const REPEATED_BYTES: u64 = 5;

/// Writes to a byte of memory without changing it, whoever else writes there. (A compiler takes an atomic operation
/// that changes nothing for a read.)
///
/// # Safety
/// The byte may be written, or its rank's program has to do with the fault.
pub unsafe fn write_nothing(byte: *mut u8) {
    // SAFETY: the caller's promise; the value stays.
    unsafe { asm!("lock or byte ptr [{byte}], 0", byte = in(reg) byte, options(nostack)) };
}

/// Starts a thread that calls `run(argument)` on a stack that ends at `stack_end` and then ends.
/// The kernel sets `*alive` to 0, and wakes it as a shared futex, when the thread has ended.
/// Returns a negative error number when the kernel refuses. With a `block` that is what the thread's register for
/// thread-local data leads to; without, it is that of the thread that calls.
///
/// # Safety
/// The stack is writable, large enough for `run`, 16-aligned at its end, and lives like `alive`, `argument` and `block`
/// until the thread has ended. `run` neither unwinds nor uses thread-local data.
pub unsafe fn start_thread(
    stack_end: *mut u8,
    alive: *mut u32,
    run: unsafe extern "C" fn(*const c_void),
    argument: *const c_void,
    block: *const c_void,
) -> i64 {
    let result: i64;
    let flags = if block.is_null() { THREAD_FLAGS } else { THREAD_FLAGS | u64::from(linux::CLONE_SETTLS) };
    // SAFETY: the parent's path only returns from the call; the new thread never leaves its
    // branch, uses its own stack, and finds its registers as they were.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "mov rdi, {argument}",
            "mov rax, {run}",
            // The end of the chain of frames. Only now: either operand may be in this register.
            "xor ebp, ebp",
            "call rax",
            "xor edi, edi",
            "mov eax, {exit}",
            "syscall",
            "ud2",
            "2:",
            exit = const SYS_EXIT,
            run = in(reg) run,
            argument = in(reg) argument,
            inlateout("rax") SYS_CLONE => result,
            in("rdi") flags,
            in("rsi") stack_end,
            in("rdx") 0,
            in("r10") alive,
            in("r8") block,
            out("rcx") _,
            out("r11") _,
        );
    }
    result
}

/// Where a handler returns to. Debuggers know these very instructions.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn return_from_signal() {
    core::arch::naked_asm!("mov rax, {number}", "syscall", number = const SYS_RT_SIGRETURN)
}

/// The events of an epoll set that are there now, `room` at most. Returns their number, errors as negative numbers.
///
/// # Safety
/// There is room for so many records at the address `events`.
pub unsafe fn epoll_events(set: u64, events: u64, room: u64) -> i64 {
    // SAFETY: the caller's promise; the last argument is the time to wait.
    unsafe { system_call(SYS_EPOLL_WAIT, [set, events, room, 0]) }
}

/// The only system call of `poll` and `select`, at a place of its own.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn waiting_call(number: u64, arguments: &[u64; 6]) -> i64 {
    core::arch::naked_asm!(
        "push rbx",
        "mov rbx, rdi",
        "mov rax, rsi",
        "mov rdi, [rax]",
        "mov rsi, [rax + 8]",
        "mov rdx, [rax + 16]",
        "mov r10, [rax + 24]",
        "mov r8, [rax + 32]",
        "mov r9, [rax + 40]",
        "mov rax, rbx",
        "syscall",
        "pop rbx",
        "ret"
    )
}

/// Where a thread has to go on to make the system call of `poll` or `select` again that returns to `rip`; `None` if
/// that is no such call's. All registers are as the call wants them.
pub fn wait_again(rip: u64) -> Option<u64> {
    let start = (waiting_call as *const ()).addr() as u64;
    let is_there = (start..start + WAITING_CALL_BYTES).contains(&rip);
    is_there.then_some(rip - REPEATED_BYTES)
}
