//! What a rank was doing when a fault killed it.
//!
//! Each rank starts with a handler of ours for the fault signals and SIGABRT, on a stack of
//! its own. It notes the signal in the rank's [`CrashRecord`], tells the root, and lets the default
//! action take its course, so the rank dies as it would have died. A program that
//! installs its own handler replaces ours and nothing is lost but the address.
//! The handler runs with whatever thread pointer the rank has: it makes raw system calls
//! and touches nothing but the records. What an MPI library of the rank has left for this moment
//! ([`Hook`]) comes once the signal is noted: should it fault in turn, the kernel ends the rank.

use super::arch;
use crate::image::reserve;
use cohort_arch::frame::{Frame, REGISTERS, RETURN_ADDRESS, STACK_POINTER};
use cohort_base::boot::Hook;
use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use linux_raw_sys::general::{SA_ONSTACK, SA_RESTORER, SA_SIGINFO, kernel_sigaction, kernel_sigset_t};

/// Signals that a faulting instruction raises, and that of `abort`.
pub const FAULTS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT];

/// The registers that a backtrace begins with.
pub type Registers = [u64; REGISTERS];

/// Bytes of the stack on which the handler runs (the largest register state is 11 KiB), and handlers of the program's
/// that ask for another stack than the thread's and set none; with its guard. What is not used takes no memory.
pub const HANDLER_STACK: usize = 256 << 10;

/// Bytes of it, at its lower end, that cannot be accessed: a multiple of every page's size.
pub const HANDLER_GUARD: usize = 64 << 10;

/// The last fault of one rank.
#[derive(Debug)]
pub struct CrashRecord {
    /// The rank's process id; 0 until it runs.
    pid: AtomicI32,
    signal: AtomicI32,
    code: AtomicI32,
    address: AtomicU64,
    registers: [AtomicU64; REGISTERS],
    /// What the rank still has to say, once it runs.
    last_words: AtomicPtr<Hook>,
}

/// A consistent copy of a [`CrashRecord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    /// The signal.
    pub signal: i32,
    /// `si_code`: above 0 when an instruction faulted, else somebody sent the signal.
    pub code: i32,
    /// `si_addr` of a fault, the sender's pid otherwise.
    pub address: u64,
    /// The registers.
    pub registers: Registers,
}

impl Crash {
    /// Where the instruction is.
    #[must_use]
    pub fn instruction(&self) -> u64 {
        self.registers[RETURN_ADDRESS]
    }

    /// The stack pointer.
    #[must_use]
    pub fn stack_pointer(&self) -> u64 {
        self.registers[STACK_POINTER]
    }
}

impl Default for CrashRecord {
    /// No task, and no fault.
    fn default() -> Self {
        Self {
            pid: AtomicI32::new(0),
            signal: AtomicI32::new(0),
            code: AtomicI32::new(0),
            address: AtomicU64::new(0),
            registers: [const { AtomicU64::new(0) }; REGISTERS],
            last_words: AtomicPtr::new(ptr::null_mut()),
        }
    }
}

impl CrashRecord {
    /// Ties the record to a task. Called by the task itself.
    pub fn claim(&self, pid: i32, last_words: &'static Hook) {
        let last_words = ptr::from_ref(last_words).cast_mut();
        self.last_words.store(last_words, Ordering::Relaxed);
        self.pid.store(pid, Ordering::Release);
    }

    /// Forgets the task, which has ended, and its fault. By the root.
    pub fn forget(&self) {
        self.pid.store(0, Ordering::Relaxed);
        self.signal.store(0, Ordering::Release);
    }

    /// The fault, if one was noted; read it after the task has ended.
    #[must_use]
    pub fn crash(&self) -> Option<Crash> {
        // Acquire pairs with the handler's Release: the other fields are older.
        let signal = self.signal.load(Ordering::Acquire);
        (signal != 0).then(|| Crash {
            signal,
            code: self.code.load(Ordering::Relaxed),
            address: self.address.load(Ordering::Relaxed),
            registers: self.registers.each_ref().map(|word| word.load(Ordering::Relaxed)),
        })
    }
}

static RECORDS: AtomicPtr<CrashRecord> = AtomicPtr::new(ptr::null_mut());
static RECORDS_LEN: AtomicUsize = AtomicUsize::new(0);

/// Who is told of a fault before its core dump begins.
static ROOT: AtomicI32 = AtomicI32::new(0);

/// Makes the records of so many ranks and tells the handler where they are. Call once, before the
/// first rank starts. Those of ranks that never start take no memory.
///
/// # Errors
/// There is no room.
pub fn make_records(count: usize) -> std::io::Result<&'static [CrashRecord]> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let room = reserve(count * size_of::<CrashRecord>(), protection, libc::MAP_NORESERVE)?;
    // SAFETY: fresh memory of that size, which is never unmapped and aligned to a page; zeros are a record's default.
    let records: &'static [CrashRecord] = unsafe { std::slice::from_raw_parts(room.cast(), count) };
    RECORDS_LEN.store(records.len(), Ordering::Relaxed);
    ROOT.store(std::process::id() as i32, Ordering::Relaxed);
    // Release pairs with the handler's Acquire of the pointer.
    RECORDS.store(records.as_ptr().cast_mut(), Ordering::Release);
    Ok(records)
}

/// The kernel's `struct sigaction` (`kernel_sigaction`, whose handlers take one argument).
#[repr(C)]
pub(super) struct KernelAction {
    pub handler: usize,
    pub flags: u64,
    pub restorer: usize,
    pub mask: u64,
}

const _: () = {
    assert!(size_of::<KernelAction>() == size_of::<kernel_sigaction>());
    assert!(offset_of!(KernelAction, handler) == offset_of!(kernel_sigaction, sa_handler_kernel));
    assert!(offset_of!(KernelAction, flags) == offset_of!(kernel_sigaction, sa_flags));
    assert!(offset_of!(KernelAction, restorer) == offset_of!(kernel_sigaction, sa_restorer));
    assert!(offset_of!(KernelAction, mask) == offset_of!(kernel_sigaction, sa_mask));
};

/// Size of the kernel's set of signals.
pub(super) const MASK_BYTES: usize = size_of::<kernel_sigset_t>();

impl KernelAction {
    /// The default action.
    pub const DEFAULT: Self = Self { handler: 0, flags: 0, restorer: 0, mask: 0 };

    /// No action.
    pub const IGNORE: Self = Self { handler: libc::SIG_IGN, ..Self::DEFAULT };

    /// Our handler, on the alternate stack.
    pub fn crash() -> Self {
        Self {
            handler: on_fault as *const () as usize,
            flags: u64::from(SA_SIGINFO | SA_ONSTACK | SA_RESTORER),
            restorer: arch::cohort_signal_return as *const () as usize,
            mask: !0,
        }
    }

    /// Installs the action for `signal` in the calling task.
    pub fn install(&self, signal: i32) -> isize {
        let action = ptr::from_ref(self) as usize;
        // SAFETY: the action is a valid kernel record; its handler is safe to run at
        // any moment of the task, see the module's documentation.
        unsafe { arch::syscall(libc::SYS_rt_sigaction, [signal as usize, action, 0, MASK_BYTES, 0]) }
    }
}

unsafe extern "C" fn on_fault(signal: i32, info: *const libc::siginfo_t, frame: *const Frame) {
    // SAFETY: the kernel passes a complete siginfo_t; the accessors only read it.
    let (code, fault, sender) = unsafe {
        let info = &*info;
        (info.si_code, info.si_addr() as u64, info.si_pid())
    };
    // SAFETY: the kernel passes the interrupted state.
    let registers = unsafe { (*frame).registers() };
    // SAFETY: `getpid` has no conditions.
    let pid = unsafe { arch::syscall(libc::SYS_getpid, [0; 5]) } as i32;
    let records = RECORDS.load(Ordering::Acquire);
    for index in 0..RECORDS_LEN.load(Ordering::Relaxed) {
        // SAFETY: `publish` gave a static slice of this length. A child that the rank
        // forked has another pid and finds no record.
        let record = unsafe { &*records.add(index) };
        if record.pid.load(Ordering::Acquire) == pid {
            record.code.store(code, Ordering::Relaxed);
            for (kept, register) in record.registers.iter().zip(registers) {
                kept.store(register, Ordering::Relaxed);
            }
            record.address.store(if code > 0 { fault } else { sender as u64 }, Ordering::Relaxed);
            record.signal.store(signal, Ordering::Release);
            // SAFETY: `claim` gave a record that stays; its order was that of the pid.
            if let Some(last_words) = unsafe { record.last_words.load(Ordering::Relaxed).as_ref() } {
                last_words.call();
            }
            tell_root();
        }
    }
    KernelAction::DEFAULT.install(signal);
    if code <= 0 {
        // Nothing will fault again: raise it once more; it is delivered on return.
        // SAFETY: neither call has conditions.
        unsafe {
            let thread = arch::syscall(libc::SYS_gettid, [0; 5]) as usize;
            arch::syscall(libc::SYS_tgkill, [pid as usize, thread, signal as usize, 0, 0]);
        }
    }
}

/// Has the root look at the records now: it hears of the end of a task after its core dump only.
fn tell_root() {
    let (root, child) = (ROOT.load(Ordering::Relaxed), libc::SIGCHLD);
    // SAFETY: the root handles this signal, of which there may be any number.
    unsafe { arch::syscall(libc::SYS_kill, [root as usize, child as usize, 0, 0, 0]) };
}
