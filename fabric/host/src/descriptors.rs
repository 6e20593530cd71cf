//! Descriptors that tasks with tables of their own share.
//!
//! Ranks share memory but not descriptors. A thief that runs another rank's network needs the sockets and
//! epoll sets that whoever ran it before has opened, under the same numbers, for they lie in libfabric's memory:
//!
//! * **Numbers of their own.** A descriptor that is made in a call of the network ([`hooks`]) is moved to a number that
//!   no other descriptor of the node has, above those that the system hands out ([`Numbers`]).
//! * **A list for each endpoint** ([`table::DescriptorTable`]), used by its calls only, so under
//!   its lock: which numbers, and which process holds them. Endpoints share no libfabric object, so
//!   a call uses those of its own list only.
//! * **Mirroring.** Before a call, the caller takes what it lacks from a process that has it:
//!   `pidfd_getfd`, then `dup3` to the same number; and closes what others have closed. One
//!   comparison if nothing has changed.
//! * **Handing over.** What a thief makes it also sends to the endpoint's owner ([`mailbox`]), so
//!   that it outlives the thief.
//! * **Closing.** Who closes a descriptor takes it out of the endpoint's epoll sets and shuts a socket down, so
//!   copies that still exist elsewhere keep nothing alive; its number is used again when all copies are gone.
//!
//! # Where `pidfd_getfd` is forbidden
//! Some sandboxes do. Each process finds out at its first call. One that may not take descriptors
//! progresses its own endpoint only, with the descriptors that it inherited when it was cloned and
//! those that it makes; its calls for others are refused as a thief's
//! ([`Refused::Busy`](cohort_fabric::Refused::Busy)): the owner makes them.

pub mod hooks;
pub mod mailbox;
pub mod table;

use rustix::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::{DupFlags, Errno};
use rustix::process::{
    PTracer, Pid, PidfdFlags, PidfdGetfdFlags, Resource, Rlimit, getrlimit, pidfd_getfd,
    pidfd_open, setrlimit,
};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Descriptors that the fabric may have at a time on this node.
const COUNT: usize = 4096;

/// Numbers below are left to programs, whatever their limit is.
const BASE_MIN: u64 = 1024;

/// Higher numbers cost memory in each process that holds one: the kernel's table has 8 bytes for each number.
const BASE_MAX: u64 = 16384;

/// Whether a process may take another's descriptors.
const UNKNOWN: u32 = 0;
const ABLE: u32 = 1;
const UNABLE: u32 = 2;

/// The numbers of the fabric's descriptors, unique on the node.
#[derive(Debug)]
pub struct Numbers {
    base: i32,
    /// A bit for each number in use.
    words: Vec<AtomicU64>,
    /// Where to look next: numbers are used again as late as possible.
    next: AtomicU32,
}

impl Numbers {
    /// Numbers above the soft limit of open files, so that the system hands none of them out, if the hard
    /// limit has room for them; else the highest that it allows.
    #[must_use]
    pub fn new(soft: u64, hard: u64) -> Self {
        let count = COUNT.min((hard / 4) as usize) & !63;
        let wanted = soft.clamp(BASE_MIN, BASE_MAX);
        let base = wanted.min(hard.saturating_sub(count as u64));
        Self {
            base: base as i32,
            words: (0..count / 64).map(|_| AtomicU64::new(0)).collect(),
            next: AtomicU32::new(0),
        }
    }

    /// First and last number.
    #[must_use]
    pub fn range(&self) -> (i32, i32) {
        (self.base, self.base + self.words.len() as i32 * 64 - 1)
    }

    /// Whether a number is one of these.
    #[must_use]
    pub fn holds(&self, number: i32) -> bool {
        let (first, last) = self.range();
        (first..=last).contains(&number)
    }

    /// Takes a number; none if all are in use.
    pub fn take(&self) -> Option<i32> {
        let count = self.words.len() as u32 * 64;
        for _ in 0..count {
            let index = self.next.fetch_add(1, Ordering::Relaxed) % count;
            let bit = 1 << (index % 64);
            let before = self.words[index as usize / 64].fetch_or(bit, Ordering::Relaxed);
            if before & bit == 0 {
                return Some(self.base + index as i32);
            }
        }
        None
    }

    /// Gives a number back.
    pub fn give(&self, number: i32) {
        let index = (number - self.base) as usize;
        self.words[index / 64].fetch_and(!(1 << (index % 64)), Ordering::Relaxed);
    }
}

/// A process that calls the network.
#[derive(Debug)]
struct Process {
    pid: AtomicI32,
    able: AtomicU32,
}

/// What all endpoints of a node share about descriptors.
#[derive(Debug)]
pub struct Descriptors {
    numbers: Numbers,
    /// Of the ranks by local rank, and last the root's.
    processes: Vec<Process>,
    defer: bool,
    /// How long another node may be silent.
    timeout: Duration,
    /// A descriptor of the root's, to find out who may take it.
    sample: AtomicI32,
}

impl Descriptors {
    /// For a node of `ranks` ranks; the caller is its root. `defer` withholds what thieves would
    /// hand to a driver; `timeout` is how long another node may be silent.
    #[must_use]
    pub fn new(ranks: usize, defer: bool, timeout: Duration) -> Self {
        let process = |_| Process {
            pid: AtomicI32::new(0),
            able: AtomicU32::new(UNKNOWN),
        };
        let (soft, hard) = open_files();
        let this = Self {
            numbers: Numbers::new(soft, hard),
            processes: (0..=ranks).map(process).collect(),
            defer,
            timeout,
            sample: AtomicI32::new(-1),
        };
        let root = this.processes.last();
        if let Some(root) = root {
            this.introduce(root);
            root.able.store(ABLE, Ordering::Relaxed);
        }
        this
    }

    /// The root's number among the processes.
    #[must_use]
    pub fn root(&self) -> usize {
        self.processes.len() - 1
    }

    /// The root's process id, which calls of all processes give as theirs.
    #[must_use]
    pub fn root_process(&self) -> i32 {
        // Relaxed: stored before any call.
        self.processes[self.root()].pid.load(Ordering::Relaxed)
    }

    /// The numbers.
    #[must_use]
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// Whether a call for `endpoint` by `caller` must leave the driver alone.
    #[must_use]
    pub fn defers(&self, endpoint: usize, caller: usize) -> bool {
        self.defer && endpoint != caller
    }

    /// Makes a descriptor of the root's known as one that everybody should be able to take.
    pub fn set_sample(&self, descriptor: i32) {
        self.sample.store(descriptor, Ordering::Relaxed);
    }

    /// Whether the calling process, number `caller`, may call an endpoint: its own, or any if it may take
    /// descriptors, so that others may take what it makes.
    #[must_use]
    pub fn may_call(&self, endpoint: usize, caller: usize) -> bool {
        endpoint == caller || self.is_able(caller)
    }

    /// Whether the calling process, number `process`, may take descriptors. Tries at the first call.
    fn is_able(&self, process: usize) -> bool {
        let entry = &self.processes[process];
        match entry.able.load(Ordering::Relaxed) {
            UNKNOWN => self.find_out(entry),
            word => word == ABLE,
        }
    }

    /// The first call of a process: whether it may take descriptors.
    #[cold]
    fn find_out(&self, process: &Process) -> bool {
        self.introduce(process);
        let able = self.try_sample();
        let word = if able { ABLE } else { UNABLE };
        process.able.store(word, Ordering::Relaxed);
        able
    }

    /// Stores the calling process's id, and lets the others take its descriptors, where the Yama
    /// security module asks for that.
    fn introduce(&self, process: &Process) {
        // Fails where there is no Yama.
        let _ = rustix::process::set_ptracer(PTracer::Any);
        let pid = rustix::process::getpid().as_raw_pid();
        // Release: who finds the id finds the permission given.
        process.pid.store(pid, Ordering::Release);
    }

    fn try_sample(&self) -> bool {
        let sample = self.sample.load(Ordering::Relaxed);
        self.fetch(self.root(), sample).is_ok()
    }

    /// A copy of another process's descriptor, under any number.
    fn fetch(&self, process: usize, number: i32) -> Result<OwnedFd, Errno> {
        let pid = self.processes[process].pid.load(Ordering::Acquire);
        let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
        let target = pidfd_open(pid, PidfdFlags::empty())?;
        pidfd_getfd(target, number, PidfdGetfdFlags::empty())
    }

    /// Takes a descriptor from one of its holders, under its own number.
    fn mirror(&self, number: i32, holders: impl Iterator<Item = usize>) -> Mirrored {
        let mut mirrored = Mirrored::Ended;
        for holder in holders {
            let fetched = self.fetch(holder, number);
            match fetched.and_then(|copy| place(&copy, number)) {
                Ok(()) => return Mirrored::Held,
                Err(Errno::SRCH) => {}
                Err(_code) => mirrored = Mirrored::Denied,
            }
        }
        mirrored
    }
}

/// What came of an attempt to take a descriptor from its holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mirrored {
    /// The caller has it.
    Held,
    /// Holders live, but do not give it.
    Denied,
    /// All holders have ended.
    Ended,
}

/// Copies a descriptor to a number, and never lets an executed program inherit it. The soft limit of
/// open files is lifted for that moment, if it is in the way: it bounds new numbers only.
fn place(descriptor: impl AsFd, number: i32) -> Result<(), Errno> {
    // SAFETY: the number is the fabric's, so nothing else is replaced, and nobody closes it here.
    let mut target = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(number) });
    let mut copy = || rustix::io::dup3(&descriptor, &mut target, DupFlags::CLOEXEC);
    match copy() {
        Err(Errno::BADF) => {
            let limit = getrlimit(Resource::Nofile);
            let lifted = Rlimit {
                current: limit.maximum,
                maximum: limit.maximum,
            };
            // If it cannot be lifted the copy fails again.
            let _ = setrlimit(Resource::Nofile, lifted);
            let copied = copy();
            let _ = setrlimit(Resource::Nofile, limit);
            copied
        }
        copied => copied,
    }
}

/// Closes a descriptor past the functions that [`hooks`] listens to; nothing happens if the process
/// has none of this number.
fn close(descriptor: i32) {
    // SAFETY: a descriptor of this module's, which nobody uses any more.
    unsafe { libc::syscall(libc::SYS_close, descriptor) };
}

/// Whether the calling process has a descriptor of this number.
fn exists(number: i32) -> bool {
    // SAFETY: reads a flag, or finds that it is not open.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_getfd(descriptor).is_ok()
}

/// Soft and hard limit of open files.
fn open_files() -> (u64, u64) {
    let limit = getrlimit(Resource::Nofile);
    (
        limit.current.unwrap_or(u64::MAX),
        limit.maximum.unwrap_or(u64::MAX),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_above_what_the_system_hands_out() {
        assert_eq!(Numbers::new(1024, 1 << 20).range(), (1024, 1024 + 4095));
        assert_eq!(Numbers::new(256, 1 << 20).range().0, 1024);
        assert_eq!(Numbers::new(1 << 20, 1 << 20).range().0, 16384);
        let (first, last) = Numbers::new(1024, 1024).range();
        assert_eq!((first, last), (768, 1023));
    }

    #[test]
    fn numbers_are_used_again_late_and_once_at_a_time() {
        let numbers = Numbers::new(256, 256);
        let (first, last) = numbers.range();
        let all: Vec<i32> = std::iter::from_fn(|| numbers.take()).collect();
        assert_eq!(all, (first..=last).collect::<Vec<i32>>());
        numbers.give(first + 5);
        numbers.give(first + 2);
        assert_eq!(numbers.take(), Some(first + 2));
        assert_eq!(numbers.take(), Some(first + 5));
        assert_eq!(numbers.take(), None);
        assert!(numbers.holds(last) && !numbers.holds(last + 1));
    }
}
