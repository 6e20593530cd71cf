//! A task as `pip-exec` makes them: it shares memory with this process, and nothing else.

use cohort_arch::system_call;
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
    // Ends with the process that started it.
    control([libc::PR_SET_PDEATHSIG.into(), libc::SIGKILL.into(), 0]);
    // SAFETY: `start` passed a leaked record.
    let start = unsafe { &*start.cast::<Start<'static>>() };
    (start.work)();
    // SAFETY: ends the task alone; by instruction, as the C library's function is not for tasks of others.
    unsafe { system_call(libc::SYS_exit_group as u32, [0; 6]) };
    0
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
pub fn give_way() {
    // SAFETY: no condition.
    unsafe { system_call(libc::SYS_sched_yield as u32, [0; 6]) };
}

/// Forbids `pidfd_getfd` to the calling task, as a sandbox does. True if that has worked.
pub fn forbid_taking_descriptors() -> bool {
    const fn statement(code: u32, value: u32) -> libc::sock_filter {
        jump(code, value, 0, 0)
    }
    const fn jump(code: u32, value: u32, yes: u8, no: u8) -> libc::sock_filter {
        libc::sock_filter { code: code as u16, jt: yes, jf: no, k: value }
    }
    let denied = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    // The number of the call is the first word of what a filter sees.
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        jump(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_pidfd_getfd as u32, 0, 1),
        statement(libc::BPF_RET | libc::BPF_K, denied),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    let no_new = [libc::PR_SET_NO_NEW_PRIVS as i64, 1, 0];
    let mode = i64::from(libc::SECCOMP_MODE_FILTER);
    let filtered = [libc::PR_SET_SECCOMP as i64, mode, (&raw const program) as i64];
    control(no_new) == 0 && control(filtered) == 0
}

/// `prctl`, by instruction.
fn control(arguments: [i64; 3]) -> i64 {
    let [first, second, third] = arguments.map(|argument| argument as usize);
    // SAFETY: the callers pass what the system reads during the call only.
    unsafe { system_call(libc::SYS_prctl as u32, [first, second, third, 0, 0, 0]) as i64 }
}
