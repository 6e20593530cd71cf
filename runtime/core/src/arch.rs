//! What depends on the machine, and on Linux.

use cohort_base::signals::Signals;
use core::ffi::c_void;
use core::mem::offset_of;
use core::ptr::null;
use linux_raw_sys::general as linux;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as machine;
#[cfg(target_arch = "x86_64")]
use x86_64 as machine;

pub use machine::{EPOLL_WAIT, PAUSE, POLL, epoll_events, start_thread, wait_again, write_nothing};
use machine::{return_from_signal, waiting_call};

/// System call numbers.
const SYS_RT_SIGACTION: u64 = linux::__NR_rt_sigaction as u64;
const SYS_PSELECT6: u64 = linux::__NR_pselect6 as u64;
const SYS_PPOLL: u64 = linux::__NR_ppoll as u64;
const SYS_TIMER_CREATE: u64 = linux::__NR_timer_create as u64;
const SYS_TIMER_SETTIME: u64 = linux::__NR_timer_settime as u64;
const SYS_TIMER_DELETE: u64 = linux::__NR_timer_delete as u64;
const SYS_RT_TGSIGQUEUEINFO: u64 = linux::__NR_rt_tgsigqueueinfo as u64;
const SYS_EXIT_GROUP: u64 = linux::__NR_exit_group as u64;

/// Size of a mask of signals.
const MASK_BYTES: u64 = size_of::<linux::kernel_sigset_t>() as u64;

/// A clock that does not jump.
pub const CLOCK_MONOTONIC: u64 = linux::CLOCK_MONOTONIC as u64;

/// A thread of the caller's process, as far as the kernel is concerned, which clears and wakes a
/// word when it ends. It has no thread-local data of its own, so it may run code of the node image only.
const THREAD_FLAGS: u64 = (linux::CLONE_VM
    | linux::CLONE_FS
    | linux::CLONE_FILES
    | linux::CLONE_SIGHAND
    | linux::CLONE_THREAD
    | linux::CLONE_SYSVSEM
    | linux::CLONE_CHILD_CLEARTID) as u64;

/// Ends the calling process.
pub fn exit_group(code: i32) -> ! {
    loop {
        // SAFETY: the call does not return.
        unsafe { system_call(SYS_EXIT_GROUP, [code as u64, 0, 0, 0]) };
    }
}

/// Flags of [`SignalAction`].
const ACTION_FLAGS: u64 = (linux::SA_SIGINFO | linux::SA_RESTORER | linux::SA_RESTART) as u64;

/// The kernel's record of what a signal does (`kernel_sigaction`, whose handlers take one argument).
#[repr(C)]
pub struct SignalAction {
    handler: *const c_void,
    flags: u64,
    restorer: *const c_void,
    blocked: u64,
}

const _: () = {
    assert!(size_of::<SignalAction>() == size_of::<linux::kernel_sigaction>());
    assert!(offset_of!(SignalAction, handler) == offset_of!(linux::kernel_sigaction, sa_handler_kernel));
    assert!(offset_of!(SignalAction, flags) == offset_of!(linux::kernel_sigaction, sa_flags));
    assert!(offset_of!(SignalAction, restorer) == offset_of!(linux::kernel_sigaction, sa_restorer));
    assert!(offset_of!(SignalAction, blocked) == offset_of!(linux::kernel_sigaction, sa_mask));
};

impl SignalAction {
    /// The default action.
    pub(crate) const DEFAULT: Self = Self { handler: null(), flags: 0, restorer: null(), blocked: 0 };

    /// The signal is ignored.
    pub const IGNORE: Self = Self { handler: core::ptr::without_provenance(1), ..Self::DEFAULT };

    /// A handler with three arguments, on the stack of the interrupted thread, that blocks all signals but
    /// [faults](crate::guard) and restarts system calls.
    pub fn new(handler: *const c_void) -> Self {
        Self {
            handler,
            flags: ACTION_FLAGS,
            restorer: return_from_signal as *const c_void,
            blocked: Signals::ALL_BUT_FAULTS.0,
        }
    }

    /// The same on the same stack, with the same signals blocked, but by another handler, of three arguments.
    pub(crate) fn replaced_by(&self, handler: usize) -> Self {
        const KEPT: u64 = (linux::SA_ONSTACK | linux::SA_NODEFER | linux::SA_RESTART) as u64;
        Self {
            handler: core::ptr::with_exposed_provenance(handler),
            flags: self.flags & KEPT | (linux::SA_SIGINFO | linux::SA_RESTORER) as u64,
            restorer: return_from_signal as *const c_void,
            blocked: self.blocked,
        }
    }

    /// The handler's address.
    pub(crate) fn handler_address(&self) -> usize {
        self.handler.addr()
    }

    /// The kernel's flags.
    pub(crate) fn flags(&self) -> u64 {
        self.flags
    }

    /// The signals that are blocked in the handler.
    pub(crate) fn blocked(&self) -> u64 {
        self.blocked
    }

    /// Whether the signal is handled by this function.
    pub fn is_handled_by(&self, handler: *const c_void) -> bool {
        self.handler == handler
    }

    /// Whether nobody handles or ignores the signal.
    pub fn is_default(&self) -> bool {
        self.handler.is_null()
    }
}

/// Sets what `signal` does in the calling process, if `action` is given, and returns what it did before;
/// `None` if the kernel refuses.
pub fn signal_action(signal: u32, action: Option<&SignalAction>) -> Option<SignalAction> {
    let mut before = SignalAction { handler: null(), flags: 0, restorer: null(), blocked: 0 };
    let action = action.map_or(null(), core::ptr::from_ref);
    let arguments = [u64::from(signal), action.addr() as u64, (&raw mut before).addr() as u64, size_of::<u64>() as u64];
    // SAFETY: both records are valid for the call.
    let result = unsafe { system_call(SYS_RT_SIGACTION, arguments) };
    (result == 0).then_some(before)
}

/// Makes a timer of the monotonic clock that notifies as the `sigevent` says, and returns its number.
pub fn timer_create(event: *const c_void) -> Option<i32> {
    let mut timer = 0_i32;
    let arguments = [CLOCK_MONOTONIC, event.addr() as u64, (&raw mut timer).addr() as u64, 0];
    // SAFETY: both records are valid for the call.
    let result = unsafe { system_call(SYS_TIMER_CREATE, arguments) };
    (result == 0).then_some(timer)
}

/// Lets a timer end once after so many nanoseconds; 0 stops it. One that does not exist is passed over.
pub fn timer_set(timer: i32, nanoseconds: u64) {
    const SECOND: u64 = 1_000_000_000;
    let times = [0, 0, nanoseconds / SECOND, nanoseconds % SECOND];
    // SAFETY: the times are valid for the call; a timer that is gone only gives an error.
    unsafe { system_call(SYS_TIMER_SETTIME, [timer as u64, 0, (&raw const times).addr() as u64, 0]) };
}

/// Deletes a timer. One that does not exist is passed over.
pub fn timer_delete(timer: i32) {
    // SAFETY: no memory is involved.
    unsafe { system_call(SYS_TIMER_DELETE, [timer as u64, 0, 0, 0]) };
}

/// The CPU that the calling thread runs on, or did just now. By a system call: where the kernel's library for that is
/// hidden, as under valgrind, rustix reads where it would be.
pub fn this_cpu() -> Option<usize> {
    let mut cpu = 0_u32;
    // SAFETY: the place for the answer is valid for the call, and nothing else is asked for.
    let result = unsafe { system_call(linux::__NR_getcpu.into(), [(&raw mut cpu).addr() as u64, 0, 0, 0]) };
    (result == 0).then_some(cpu as usize)
}

/// Sends a signal with a record of the kernel's `siginfo` to one thread of a process of this
/// memory. `false`: it does not exist.
pub fn signal_thread(process: u32, thread: u32, signal: u32, information: *const c_void) -> bool {
    let arguments = [u64::from(process), u64::from(thread), u64::from(signal), information.addr() as u64];
    // SAFETY: the record is valid for the call.
    unsafe { system_call(SYS_RT_TGSIGQUEUEINFO, arguments) == 0 }
}

/// Waits for descriptors with the signals of `*blocked` blocked, at most for `time` (null: without end), where
/// the kernel leaves what is left. Returns as `ppoll`, errors as negative numbers.
///
/// # Safety
/// `descriptors` is the address of `count` records of `poll`; `time` is valid or null; `blocked` is valid.
pub unsafe fn poll<T>(descriptors: u64, count: u64, time: *mut T, blocked: *const u64) -> i64 {
    let (time, blocked) = (time.addr() as u64, blocked.addr() as u64);
    let arguments = [descriptors, count, time, blocked, MASK_BYTES, 0];
    // SAFETY: the caller's promise.
    unsafe { waiting_call(SYS_PPOLL, &arguments) }
}

/// The same for the descriptors below `count` in `sets` (addresses, or 0), as `select` takes and changes them.
///
/// # Safety
/// As [`poll`]; the sets are as `select` wants them.
pub unsafe fn select<T>(count: u64, sets: [u64; 3], time: *mut T, blocked: *const u64) -> i64 {
    let mask = [blocked.addr() as u64, MASK_BYTES];
    let (time, mask) = (time.addr() as u64, (&raw const mask).addr() as u64);
    // SAFETY: the caller's promise; the mask's record lives during the call.
    unsafe { waiting_call(SYS_PSELECT6, &[count, sets[0], sets[1], sets[2], time, mask]) }
}

/// # Safety
/// The arguments are what the system call expects; a fifth one is the size of a mask of signals.
unsafe fn system_call(number: u64, arguments: [u64; 4]) -> i64 {
    let [first, second, third, fourth] = arguments.map(|argument| argument as usize);
    let arguments = [first, second, third, fourth, MASK_BYTES as usize, 0];
    // SAFETY: the caller's promise.
    unsafe { cohort_arch::system_call(number as u32, arguments) as i64 }
}
