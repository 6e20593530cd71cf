//! What a new task takes over from a process that a wrapper had set up, beyond what every rank is given.

use super::arch::own;
use super::crash::{FAULTS, KernelAction};

/// Attributes that `execve` keeps. The task sets them before it enters its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inherited {
    /// `umask(2)`
    pub file_mask: u32,
    /// Policy, priority and niceness: the words of a `struct sched_attr`, if they are not the root's.
    pub scheduling: Option<[u64; SCHEDULING_WORDS]>,
    /// `ioprio_set(2)`, if it is not the root's.
    pub io_priority: Option<u32>,
    /// Mode and nodes of `set_mempolicy(2)`, if they are not the default's.
    pub memory_policy: Option<(u32, u64)>,
    /// The ignored signals, as a kernel mask. All others have their default action.
    pub ignored: u64,
}

/// Size of the largest `struct sched_attr` that kernels have so far, in words.
pub const SCHEDULING_WORDS: usize = 7;

/// `IOPRIO_WHO_PROCESS`
pub const THIS_PROCESS: usize = 1;

/// The signals that may have actions.
const SIGNALS: i32 = 64;

/// Sets them in the calling task.
pub(super) fn apply(inherited: &Inherited) -> isize {
    own(libc::SYS_umask, [inherited.file_mask as usize, 0, 0, 0, 0]);
    let mut result = 0;
    if let Some(words) = &inherited.scheduling {
        let words = words.as_ptr() as usize;
        result = result.min(own(libc::SYS_sched_setattr, [0, words, 0, 0, 0]));
    }
    if let Some(priority) = inherited.io_priority {
        let arguments = [THIS_PROCESS, 0, priority as usize, 0, 0];
        result = result.min(own(libc::SYS_ioprio_set, arguments));
    }
    if let Some((mode, nodes)) = &inherited.memory_policy {
        // The kernel takes one bit less than it is told of.
        let (place, bits) = match *nodes {
            0 => (0, 0),
            _ => (core::ptr::from_ref(nodes) as usize, u64::BITS as usize),
        };
        let arguments = [*mode as usize, place, bits, 0, 0];
        result = result.min(own(libc::SYS_set_mempolicy, arguments));
    }
    for signal in 1..=SIGNALS {
        let is_fixed = signal == libc::SIGKILL || signal == libc::SIGSTOP;
        if is_fixed || FAULTS.contains(&signal) {
            continue;
        }
        let action = match inherited.ignored & (1 << (signal - 1)) {
            0 => KernelAction::DEFAULT,
            _ => KernelAction::IGNORE,
        };
        result = result.min(action.install(signal));
    }
    result
}
