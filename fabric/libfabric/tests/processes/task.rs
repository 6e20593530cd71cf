//! A task as `pip-exec` makes them: it shares memory with this process, and nothing else.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Stack of a task.
const STACK: usize = 1 << 20;

/// A running task.
pub struct Task {
    pid: i32,
}

struct Start<'a> {
    work: &'a (dyn Fn() + Sync),
}

/// Starts a task that runs `work` and ends. Its thread-local data is the calling thread's, so outside of
/// network calls `work` must use neither it nor the C library: atomics only.
pub fn start(work: &'static (dyn Fn() + Sync)) -> Task {
    let start = Box::leak(Box::new(Start { work }));
    // SAFETY: a fresh stack that is never unmapped; the task ends without returning.
    let pid = unsafe {
        let stack = libc::mmap(
            std::ptr::null_mut(),
            STACK,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        assert_ne!(stack, libc::MAP_FAILED);
        let flags = libc::CLONE_VM | libc::SIGCHLD;
        let argument = std::ptr::from_mut(start).cast();
        libc::clone(run, stack.byte_add(STACK), flags, argument)
    };
    assert!(pid > 0, "{}", std::io::Error::last_os_error());
    Task { pid }
}

extern "C" fn run(start: *mut libc::c_void) -> i32 {
    // Ends with the process that started it. SAFETY: no condition.
    unsafe {
        let (call, name) = (libc::SYS_prctl, libc::PR_SET_PDEATHSIG);
        std::arch::asm!("syscall", inout("rax") call => _, in("rdi") name, in("rsi") libc::SIGKILL,
            in("rdx") 0, in("r10") 0, in("r8") 0, out("rcx") _, out("r11") _);
    }
    // SAFETY: `start` passed a leaked record.
    let start = unsafe { &*start.cast::<Start<'static>>() };
    (start.work)();
    // SAFETY: ends the task alone; by instruction, as the C library's function is not for tasks of others.
    unsafe {
        std::arch::asm!("syscall", in("rax") libc::SYS_exit_group, in("rdi") 0, options(noreturn));
    }
}

impl Task {
    /// Waits for the task's end, which must be a success.
    pub fn join(self) {
        let mut status = 0;
        // SAFETY: a child of this process, and a place for its status.
        let pid = unsafe { libc::waitpid(self.pid, &raw mut status, 0) };
        assert_eq!((pid, status), (self.pid, 0));
    }
}

/// Waits until a word is true, as a task may.
pub fn wait_for(word: &AtomicBool) {
    while !word.load(Ordering::Acquire) {
        give_way();
    }
}

/// Waits until a counter has reached a value, as a task may.
pub fn wait_for_done(counter: &AtomicU32, value: u32) {
    while counter.load(Ordering::Acquire) < value {
        give_way();
    }
}

/// Lets another task run.
fn give_way() {
    // SAFETY: no condition.
    unsafe {
        let mut result = libc::SYS_sched_yield;
        std::arch::asm!("syscall", inout("rax") result, out("rcx") _, out("r11") _);
        let _ = result;
    }
}
