//! 64-bit ARM.

use super::THREAD_FLAGS;
use core::arch::asm;
use core::ffi::c_void;
use linux_raw_sys::general as linux;

const SYS_RT_SIGRETURN: u64 = linux::__NR_rt_sigreturn as u64;
const SYS_CLONE: u64 = linux::__NR_clone as u64;
const SYS_EXIT: u64 = linux::__NR_exit as u64;

/// Numbers of calls that wait and that not every machine's kernel has.
pub const POLL: Option<u32> = None;
/// `epoll_wait`.
pub const EPOLL_WAIT: Option<u32> = None;
/// `pause`.
pub const PAUSE: Option<u32> = None;

/// Where [`waiting_call`] begins again, and where its system call returns to.
const AGAIN: u64 = 12;
const RETURNS: u64 = 32;

/// Writes to a byte of memory without changing it, whoever else writes there. (A compiler takes an atomic operation
/// that changes nothing for a read.)
///
/// # Safety
/// The byte may be written, or its rank's program has to do with the fault.
pub unsafe fn write_nothing(byte: *mut u8) {
    // SAFETY: the caller's promise; the value stays.
    unsafe {
        asm!(
            "2: ldxrb {value:w}, [{byte}]",
            "stxrb {failed:w}, {value:w}, [{byte}]",
            "cbnz {failed:w}, 2b",
            byte = in(reg) byte,
            value = out(reg) _,
            failed = out(reg) _,
            options(nostack),
        );
    }
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
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, #0",
            "mov x30, #0",
            "mov x0, {argument}",
            "blr {run}",
            "mov x0, #0",
            "mov x8, #{exit}",
            "svc #0",
            "brk #1",
            "2:",
            exit = const SYS_EXIT,
            run = in(reg) run,
            argument = in(reg) argument,
            in("x8") SYS_CLONE,
            inlateout("x0") flags => result,
            in("x1") stack_end,
            in("x2") 0,
            in("x3") block,
            in("x4") alive,
            out("x30") _,
        );
    }
    result
}

/// Where a handler returns to. Debuggers know these very instructions.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn return_from_signal() {
    core::arch::naked_asm!("mov x8, #{number}", "svc #0", number = const SYS_RT_SIGRETURN)
}

/// The events of an epoll set that are there now, `room` at most. Returns their number, errors as negative numbers.
///
/// # Safety
/// There is room for so many records at the address `events`.
pub unsafe fn epoll_events(set: u64, events: u64, room: u64) -> i64 {
    // SAFETY: the caller's promise; the last argument is the time to wait, and the call is given no mask of signals.
    unsafe {
        let (set, events, room) = (set as usize, events as usize, room as usize);
        cohort_arch::system_call(linux::__NR_epoll_pwait, [set, events, room, 0, 0, 0]) as i64
    }
}

/// The only system call of `poll` and `select`, at a place of its own.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn waiting_call(number: u64, arguments: &[u64; 6]) -> i64 {
    core::arch::naked_asm!(
        "stp x19, x20, [sp, #-16]!",
        "mov x19, x0",
        "mov x20, x1",
        "mov x8, x19",
        "ldp x0, x1, [x20]",
        "ldp x2, x3, [x20, #16]",
        "ldp x4, x5, [x20, #32]",
        "svc #0",
        "ldp x19, x20, [sp], #16",
        "ret"
    )
}

/// Where a thread has to go on to make the system call of `poll` or `select` again that returns to `instruction`;
/// `None` if that is no such call's. The registers that have its arguments are kept there.
pub fn wait_again(instruction: u64) -> Option<u64> {
    let start = (waiting_call as *const ()).addr() as u64;
    (instruction == start + RETURNS).then_some(start + AGAIN)
}
