//! The clone, and the code that a new task runs before its dynamic linker.

use super::arch::{self, own};
use super::crash::{CrashRecord, FAULTS, HANDLER_GUARD, HANDLER_STACK, KernelAction, MASK_BYTES};
use super::exec::ExecArguments;
use super::inherit::{self, Inherited};
use cohort_base::boot::Hook;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::io;

/// Everything a new task sets up before it enters its program. The root fills it; the
/// task only reads it, and lives in the root's memory until the address space ends.
#[derive(Debug)]
pub struct StartPlan {
    /// Stack pointer to begin with: what [`super::stack::build`] returned, or any that leaves
    /// room for the set-up if the task executes a program.
    pub stack_pointer: usize,
    /// What it runs then.
    pub program: Program,
    /// The root's pid, to notice that it died before the task could ask to die with it.
    pub root: i32,
    /// It dies with the thread that starts it, and its end is a signal to the root and something to `wait` for. Else
    /// none of that: `wait` finds it by `__WALL` only.
    pub follows: bool,
    /// Descriptors to become 0, 1 and 2; -1 keeps what is there.
    pub standard: [i32; 3],
    /// The task needs no descriptor from this one on, and copies only those below it out of the root's table, which
    /// it uses until then: see [`StartPlan::has_parted`]. Without it the kernel copies all of them.
    pub above: Option<u32>,
    /// Set when the task has its own table of descriptors.
    pub parted: AtomicU32,
    /// Ranges of descriptors (first, last) to close: all that `execve` would close.
    pub close: &'static [(u32, u32)],
    /// Directory to work in, or -1.
    pub directory: i32,
    /// It begins a session, without a terminal that controls it.
    pub own_session: bool,
    /// CPUs to run on, as the words of a kernel mask; empty keeps the root's.
    pub affinity: Vec<u64>,
    /// Signal mask to run with.
    pub signal_mask: u64,
    /// It ignores SIGPIPE, as the root does, if no wrapper has set up anything.
    pub ignores_pipe: bool,
    /// Limits to set: (resource, soft, hard).
    pub limits: Vec<(u32, libc::rlimit64)>,
    /// What a wrapper has set up, if one has.
    pub inherited: Option<Inherited>,
    /// Stack of [`HANDLER_STACK`] bytes for the fault handler.
    pub handler_stack: usize,
    /// The task's name, ended by NUL.
    pub name: [u8; 16],
    /// Where its faults are noted.
    pub crash: &'static CrashRecord,
    /// Where it writes its pid.
    pub pid: &'static AtomicI32,
    /// What a fault handler calls last.
    pub last_words: &'static Hook,
    /// What failed, if something did: see [`StartPlan::failure`].
    pub failed: AtomicU64,
}

/// What a task runs when it is set up.
#[derive(Debug)]
pub enum Program {
    /// The dynamic linker mapped for it, whose entry point this is; it stays in the address space.
    Mapped(usize),
    /// A program in an address space of its own.
    Executed(ExecArguments),
}

/// Exit status of a task that could not be set up.
pub const SETUP_FAILED: i32 = 127;

/// Highest descriptor that is closed on a kernel that has no `close_range`.
const CLOSE_MAX: u32 = 8192;

/// A step of the set-up, for the message about its failure.
const STEPS: [&str; 11] = [
    "asking to end with pip-exec",
    "copying descriptors",
    "setting up standard input and output",
    "closing descriptors",
    "changing the working directory",
    "beginning a session",
    "binding to CPUs",
    "setting limits",
    "taking over what its wrapper has set up",
    "setting up signal handling",
    "executing the program",
];

impl StartPlan {
    /// One of this process, which keeps what the process has but its signal mask, and whose faults are noted nowhere.
    #[must_use]
    pub fn new(stack_pointer: usize, program: Program, handler_stack: usize) -> Self {
        Self {
            stack_pointer,
            program,
            root: std::process::id() as i32,
            follows: true,
            standard: [-1; 3],
            above: None,
            parted: AtomicU32::new(0),
            close: &[],
            directory: -1,
            own_session: false,
            affinity: Vec::new(),
            signal_mask: 0,
            ignores_pipe: false,
            limits: Vec::new(),
            inherited: None,
            handler_stack,
            name: [0; 16],
            crash: Box::leak(Box::default()),
            pid: Box::leak(Box::default()),
            last_words: Box::leak(Box::default()),
            failed: AtomicU64::new(0),
        }
    }

    /// The step that failed and why, once the task has ended with [`SETUP_FAILED`].
    pub fn failure(&self) -> Option<(&'static str, io::Error)> {
        let word = self.failed.load(Ordering::Acquire);
        let step = STEPS.get((word >> 32).checked_sub(1)? as usize)?;
        Some((step, io::Error::from_raw_os_error(word as u32 as i32)))
    }

    /// Whether the root may close the descriptors that the task takes from it.
    pub fn has_parted(&self) -> bool {
        // Acquire pairs with the Release in `copy_descriptors`.
        self.above.is_none() || self.parted.load(Ordering::Acquire) != 0
    }
}

/// Starts a task; returns its pid. The calling thread must outlive a task that
/// [follows](StartPlan::follows) it.
///
/// # Errors
/// The clone fails (`EAGAIN` for want of tasks).
///
/// # Safety
/// The plan's entry, stack, and handler stack are mapped, belong to this task alone and
/// stay mapped until the address space ends. All signals are blocked in the caller.
pub unsafe fn start(plan: &'static StartPlan) -> io::Result<i32> {
    let shared = plan.above.map_or(0, |_| libc::CLONE_FILES);
    let signal = if plan.follows { libc::SIGCHLD } else { 0 };
    let flags = (libc::CLONE_VM | shared | signal) as usize;
    let stack = plan.stack_pointer & !15;
    let argument = core::ptr::from_ref(plan).cast();
    // SAFETY: below the initial stack pointer the stack is unused, and larger than what
    // `run` needs; `run` makes raw system calls only.
    let result = unsafe { arch::clone_onto(flags, stack, run, argument) };
    if result < 0 { Err(io::Error::from_raw_os_error(-result as i32)) } else { Ok(result as i32) }
}

/// The new task's first code. No libc call, no allocation, no panic: the thread pointer
/// is the root's.
unsafe extern "C" fn run(argument: *const ()) -> ! {
    // SAFETY: `start` passed a plan that lives as long as the address space.
    let plan = unsafe { &*argument.cast::<StartPlan>() };
    for (index, step) in [
        follow_root,
        copy_descriptors,
        set_standard,
        close_others,
        set_directory,
        begin_session,
        set_affinity,
        set_limits,
        inherit,
        set_signals,
        execute,
    ]
    .iter()
    .enumerate()
    {
        let result = step(plan);
        if result < 0 {
            let word = ((index as u64 + 1) << 32) | result.unsigned_abs() as u64;
            plan.failed.store(word, Ordering::Release);
            // SAFETY: ends this task only, which has no threads yet.
            unsafe { arch::syscall(libc::SYS_exit_group, [SETUP_FAILED as usize, 0, 0, 0, 0]) };
        }
    }
    // A program that was executed is not here any more.
    let entry = match plan.program {
        Program::Mapped(entry) => entry,
        Program::Executed(_) => 0,
    };
    // SAFETY: the plan's promise; every step succeeded.
    unsafe { arch::enter(entry, plan.stack_pointer) }
}

fn follow_root(plan: &StartPlan) -> isize {
    let pid = own(libc::SYS_getpid, [0; 5]) as i32;
    plan.crash.claim(pid, plan.last_words);
    plan.pid.store(pid, Ordering::Release);
    let death = libc::SIGKILL as usize;
    let result = match plan.follows {
        true => own(libc::SYS_prctl, [libc::PR_SET_PDEATHSIG as usize, death, 0, 0, 0]),
        false => 0,
    };
    if own(libc::SYS_getppid, [0; 5]) as i32 != plan.root {
        return -(libc::ESRCH as isize);
    }
    own(libc::SYS_prctl, [libc::PR_SET_NAME as usize, plan.name.as_ptr() as usize, 0, 0, 0]);
    result
}

/// Takes a table of descriptors of its own, with those that it needs. So a rank does not copy and close what the root
/// has for all ranks before it.
fn copy_descriptors(plan: &StartPlan) -> isize {
    let Some(first) = plan.above else {
        return 0;
    };
    let unshare = libc::CLOSE_RANGE_UNSHARE as usize;
    let range = [first as usize, u32::MAX as usize, unshare, 0, 0];
    let mut result = own(libc::SYS_close_range, range);
    if result < 0 {
        // Before Linux 5.9 all are copied, and closed later.
        result = own(libc::SYS_unshare, [libc::CLONE_FILES as usize, 0, 0, 0, 0]);
    }
    if result >= 0 {
        plan.parted.store(1, Ordering::Release);
    }
    result
}

fn set_standard(plan: &StartPlan) -> isize {
    for (target, &source) in plan.standard.iter().enumerate() {
        if source >= 0 {
            let result = arch::duplicate(source as usize, target);
            if result < 0 {
                return result;
            }
        }
    }
    0
}

fn close_others(plan: &StartPlan) -> isize {
    if matches!(plan.program, Program::Executed(_)) {
        // `execve` does it.
        return 0;
    }
    for &(first, last) in plan.close {
        // The directory is closed by the next step, which needs it.
        let directory = plan.directory as u32;
        let keep = plan.directory >= 0 && (first..=last).contains(&directory);
        let ranges = match keep {
            true => [(first, directory.wrapping_sub(1)), (directory + 1, last)],
            false => [(first, last), (1, 0)],
        };
        for (first, last) in ranges.into_iter().filter(|(first, last)| first <= last) {
            let result = close_range(first, last);
            if result < 0 {
                return result;
            }
        }
    }
    0
}

/// Closes descriptors; before Linux 5.9, which has a call for it, one by one.
fn close_range(first: u32, last: u32) -> isize {
    let result = own(libc::SYS_close_range, [first as usize, last as usize, 0, 0, 0]);
    if result != -(libc::ENOSYS as isize) {
        return result;
    }
    for descriptor in first..=last.min(CLOSE_MAX) {
        own(libc::SYS_close, [descriptor as usize, 0, 0, 0, 0]);
    }
    0
}

fn set_directory(plan: &StartPlan) -> isize {
    if plan.directory < 0 {
        return 0;
    }
    let result = own(libc::SYS_fchdir, [plan.directory as usize, 0, 0, 0, 0]);
    own(libc::SYS_close, [plan.directory as usize, 0, 0, 0, 0]);
    result
}

fn begin_session(plan: &StartPlan) -> isize {
    match plan.own_session {
        true => own(libc::SYS_setsid, [0; 5]),
        false => 0,
    }
}

fn set_affinity(plan: &StartPlan) -> isize {
    if plan.affinity.is_empty() {
        return 0;
    }
    let mask = plan.affinity.as_ptr() as usize;
    own(libc::SYS_sched_setaffinity, [0, plan.affinity.len() * 8, mask, 0, 0])
}

fn set_limits(plan: &StartPlan) -> isize {
    for (resource, limit) in &plan.limits {
        let limit = core::ptr::from_ref(limit) as usize;
        let result = own(libc::SYS_prlimit64, [0, *resource as usize, limit, 0, 0]);
        if result < 0 {
            return result;
        }
    }
    0
}

fn inherit(plan: &StartPlan) -> isize {
    plan.inherited.as_ref().map_or(0, inherit::apply)
}

fn set_signals(plan: &StartPlan) -> isize {
    let (lowest, length) = (plan.handler_stack + HANDLER_GUARD, HANDLER_STACK - HANDLER_GUARD);
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let mut result = own(libc::SYS_mprotect, [lowest, length, protection, 0, 0]);
    let stack = libc::stack_t { ss_sp: lowest as *mut libc::c_void, ss_flags: 0, ss_size: length };
    result = result.min(own(libc::SYS_sigaltstack, [core::ptr::from_ref(&stack) as usize, 0, 0, 0, 0]));
    if plan.inherited.is_none() && !plan.ignores_pipe {
        // Rust's start-up code ignores SIGPIPE in the root; ranks must not inherit that.
        result = result.min(KernelAction::DEFAULT.install(libc::SIGPIPE));
    }
    let action = KernelAction::crash();
    for signal in FAULTS {
        result = result.min(action.install(signal));
    }
    let mask = core::ptr::from_ref(&plan.signal_mask) as usize;
    result.min(own(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, mask, 0, MASK_BYTES, 0]))
}

/// Leaves the address space, if that is the plan. Does not return then, unless it fails.
fn execute(plan: &StartPlan) -> isize {
    let Program::Executed(execution) = &plan.program else {
        return 0;
    };
    if execution.inherited >= 0 {
        let descriptor = execution.inherited as usize;
        own(libc::SYS_fcntl, [descriptor, libc::F_SETFD as usize, 0, 0, 0]);
    }
    own(
        libc::SYS_execve,
        [
            execution.file.as_ptr() as usize,
            execution.arguments.as_ptr() as usize,
            execution.environment.as_ptr() as usize,
            0,
            0,
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image;
    use crate::task::stack::Strings;
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
    use nix::unistd::{Pid, pipe2};
    use std::ffi::OsStr;
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

    /// A pipe whose descriptors are among the first 512. Other tests may have opened all of these for a while.
    fn low_pipe() -> (OwnedFd, OwnedFd) {
        for _ in 0..1200 {
            let (source, sink) = pipe2(OFlag::O_CLOEXEC).expect("descriptors");
            if sink.as_raw_fd() < 512 {
                return (source, sink);
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("no descriptor below 512 in a minute");
    }

    /// How many descriptors a task has room for whose root has one far above those that the task needs.
    fn room(above: Option<u32>) -> u32 {
        let (source, sink) = low_pipe();
        let far = fcntl(sink.as_fd(), FcntlArg::F_DUPFD_CLOEXEC(900)).expect("a descriptor");
        // SAFETY: made just now.
        let far = unsafe { OwnedFd::from_raw_fd(far) };
        let words = ["grep", "FDSize", "/proc/self/status"].map(OsStr::new);
        let strings = Strings::new(words, [], OsStr::new("/bin/grep")).expect("no NUL");
        let writable = libc::PROT_READ | libc::PROT_WRITE;
        let memory = image::reserve(1 << 16, writable, 0).expect("memory") as usize;
        let program = Program::Executed(ExecArguments::new(&strings, Vec::new(), -1));
        let plan: &'static StartPlan = Box::leak(Box::new(StartPlan {
            standard: [-1, sink.as_raw_fd(), -1],
            above,
            ..StartPlan::new(memory + (1 << 15), program, memory + (1 << 15))
        }));
        let (all, mut before) = (SigSet::all(), SigSet::empty());
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&all), Some(&mut before)).expect("a mask");
        // SAFETY: the memory is the task's, signals are blocked, and this thread waits for the task's end.
        let pid = unsafe { start(plan) }.expect("a task");
        nix::sys::wait::waitpid(Pid::from_raw(pid), None).expect("own child");
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None).expect("a mask");
        assert!(plan.has_parted() && plan.failure().is_none(), "{plan:?}");
        drop((sink, far));
        let mut said = String::new();
        File::from(source).read_to_string(&mut said).expect("a pipe");
        let size = said.trim_start_matches("FDSize:").trim();
        size.parse().expect("a number")
    }

    #[test]
    fn a_task_copies_no_descriptor_above_those_that_it_needs() {
        assert!(room(None) > 900, "as the kernel copies them");
        assert!(room(Some(512)) <= 512);
    }
}
