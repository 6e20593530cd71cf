//! Descriptors that tasks with tables of their own share.
//!
//! Ranks share memory but not descriptors. A thief that runs another rank's network needs the sockets and
//! epoll sets that whoever ran it before has opened, under the same numbers, for they lie in libfabric's memory:
//!
//! * **Numbers of their own.** A descriptor that is made in a call of the network ([`hooks`]) is moved to a number that
//!   no other descriptor of the node has, above those that the system hands out ([`numbers`]).
//! * **A list for each endpoint** ([`table::DescriptorTable`]), used by its calls only, so under
//!   its lock: which numbers, and which process holds them. Endpoints share no libfabric object, so
//!   a call uses those of its own list only.
//! * **Mirroring.** Before a call, the caller takes what it lacks from a process that has it:
//!   `pidfd_getfd`, then `dup3` to the same number; and closes what others have closed. If nothing
//!   has changed that is one comparison, and a look whether the program has closed all it found.
//! * **Handing over.** What a thief makes it also sends to the endpoint's owner ([`mailbox`]), so
//!   that it outlives the thief.
//! * **Keeping.** The root takes a copy of each too (`network`), so that a rank that closes all descriptors it finds
//!   can take them again, even if nobody else has called for its endpoint.
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
pub mod numbers;
pub mod table;

use numbers::{Identity, Numbers, Placeholder, lifted, open_files, place};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::process::{PTracer, Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

/// What `kcmp` compares: the value of the kernel's header `linux/kcmp.h`, which no crate binds; a test compares them.
const KCMP_FILE: i32 = 0;

/// Whether a process may take another's descriptors.
const UNKNOWN: u32 = 0;
const ABLE: u32 = 1;
const UNABLE: u32 = 2;

/// A process that calls the network.
#[derive(Debug)]
struct Process {
    pid: AtomicI32,
    able: AtomicU32,
    /// How often it has closed what it does not know of.
    losses: AtomicU32,
    /// It was reported that it uses a number of the fabric.
    is_reported: AtomicBool,
}

/// What all endpoints of a node share about descriptors.
#[derive(Debug)]
pub struct Descriptors {
    numbers: Numbers,
    placeholder: Option<Placeholder>,
    /// It was reported that there are no more numbers.
    is_short: AtomicBool,
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
    /// hand to a driver; `timeout` is how long another node may be silent; `expected` is how many descriptors are
    /// likely to be needed.
    #[must_use]
    pub fn new(ranks: usize, defer: bool, timeout: Duration, expected: u32) -> Self {
        let process = |_| Process {
            pid: AtomicI32::new(0),
            able: AtomicU32::new(UNKNOWN),
            losses: AtomicU32::new(0),
            is_reported: AtomicBool::new(false),
        };
        let (soft, hard) = open_files();
        let numbers = Numbers::new(soft, hard);
        numbers.expect(expected);
        let placeholder = Placeholder::make(&numbers);
        if let Some(placeholder) = placeholder {
            let taken = placeholder.spread(numbers.range());
            taken.into_iter().for_each(|number| numbers.avoid(number));
        }
        let this = Self {
            numbers,
            placeholder,
            is_short: AtomicBool::new(false),
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

    /// Whether a call must leave the driver alone: one that is not by the rank that it is for.
    #[must_use]
    pub fn defers(&self, is_owner: bool) -> bool {
        self.defer && !is_owner
    }

    /// Makes a descriptor of the root's known as one that everybody should be able to take.
    pub fn set_sample(&self, descriptor: i32) {
        self.sample.store(descriptor, Ordering::Relaxed);
    }

    /// Whether the calling process, number `caller`, may call an endpoint: one that no other rank shares with it, or
    /// any if it may take descriptors, so that others may take what it makes.
    #[must_use]
    pub fn may_call(&self, is_own: bool, caller: usize) -> bool {
        is_own || self.is_able(caller)
    }

    /// Whether it is known that a process may not take descriptors. By any task.
    #[must_use]
    pub fn is_unable(&self, process: usize) -> bool {
        self.processes[process].able.load(Ordering::Relaxed) == UNABLE
    }

    /// Says once that a process can call no endpoint that it shares.
    #[cold]
    pub fn report_unable(&self, process: usize) {
        if !self.processes[process].is_reported.swap(true, Ordering::Relaxed) {
            cohort_base::complain!(
                "cohort: local rank {process} may not take descriptors (pidfd_getfd), so other ranks have to make its \
                 calls of the network; COHORT_NET_ENDPOINTS={} gives each rank an endpoint of its own",
                self.root()
            );
        }
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

    /// Whether the calling process has all that it once had, as far as the first number tells. No seat is needed.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.placeholder.is_none_or(|placeholder| placeholder.is_home())
    }

    /// How often process `process` has closed what it does not know of.
    #[must_use]
    pub fn losses(&self, process: usize) -> u32 {
        // Relaxed: written by the process that it is about.
        self.processes[process].losses.load(Ordering::Relaxed)
    }

    /// The calling process has closed what it does not know of: begins anew. False if that is not possible.
    /// From a seat.
    #[cold]
    pub fn recover(&self, process: usize) -> bool {
        let Some(placeholder) = self.placeholder else {
            return true;
        };
        let number = placeholder.number();
        let fetched = self.fetch(self.root(), number);
        let placed = fetched.and_then(|file| place(file, number, None));
        if let Err(error) = placed {
            self.report_in_use(process, number, error);
            return false;
        }
        self.processes[process].losses.fetch_add(1, Ordering::Relaxed);
        // Where something of the program lies is found out when the number is needed.
        let _ = placeholder.spread(self.numbers.range());
        true
    }

    /// Says once that a process cannot have a descriptor of the network.
    #[cold]
    fn report_in_use(&self, process: usize, number: i32, error: Errno) {
        if !self.processes[process].is_reported.swap(true, Ordering::Relaxed) {
            let reason = match error {
                Errno::EXIST => "a file of the program has that number".to_owned(),
                error => error.to_string(),
            };
            cohort_base::complain!(
                "cohort: local rank {process} cannot hold descriptor {number} of the network: {reason}; what needs it \
                 waits until it can"
            );
        }
    }

    /// Whether there is a number for a new descriptor; says once if not.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let number = self.numbers.take();
        number.into_iter().for_each(|number| self.numbers.give(number));
        if number.is_none() {
            self.report_short();
        }
        number.is_some()
    }

    /// Says once that there are no more numbers.
    #[cold]
    fn report_short(&self) {
        if !self.is_short.swap(true, Ordering::Relaxed) {
            let (first, last) = self.numbers.range();
            cohort_base::complain!(
                "cohort: the network uses all of its {} descriptors on this node; new connections wait for old ones to \
                 end. The hard limit of open files decides how many there are (ulimit -Hn)",
                last - first + 1
            );
        }
    }

    /// Closes a descriptor of the network in the calling process, and keeps its number from the program.
    fn release(&self, number: i32) {
        match &self.placeholder {
            Some(placeholder) => placeholder.replace(number),
            None => close(number),
        }
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
        lifted(|| {
            let target = pidfd_open(pid, PidfdFlags::empty())?;
            pidfd_getfd(target, number, PidfdGetfdFlags::empty())
        })
    }

    /// Whether what lies at a number in the calling process is what its holders have there; yes if nobody can tell.
    /// Epoll sets and event counters have no other difference.
    fn is_same(&self, process: usize, holders: &[bool], number: i32) -> bool {
        if self.losses(process) == 0 {
            // Then it has come from the root.
            return true;
        }
        let pid = |process: usize| self.processes[process].pid.load(Ordering::Acquire);
        let mut holders = holders.iter().enumerate().filter(|(_, holds)| **holds);
        holders.all(|(holder, _)| {
            // SAFETY: numbers only.
            let order = unsafe {
                let (own, other) = (pid(process), pid(holder));
                libc::syscall(libc::SYS_kcmp, own, other, KCMP_FILE, number, number)
            };
            order <= 0
        })
    }

    /// Takes a descriptor from one of its holders, under its own number, into the calling process `process`.
    fn mirror(
        &self,
        (number, identity): (i32, Identity),
        process: usize,
        holders: impl Iterator<Item = usize>,
    ) -> Mirrored {
        let mut mirrored = Mirrored::Ended;
        for holder in holders {
            let copy = match self.fetch(holder, number) {
                Ok(copy) => copy,
                // It has ended, or lost it.
                Err(Errno::SRCH | Errno::BADF) => continue,
                Err(_code) => {
                    mirrored = Mirrored::Denied;
                    continue;
                }
            };
            if Identity::of(copy.as_raw_fd()) != Some(identity) {
                // The holder has lost it, and lost its number to something else.
                continue;
            }
            return match place(&copy, number, self.placeholder.as_ref()) {
                Ok(()) => Mirrored::Held,
                Err(error) => {
                    self.report_in_use(process, number, error);
                    Mirrored::Denied
                }
            };
        }
        mirrored
    }
}

/// Whether a process that this one starts may take descriptors from it. Sandboxes forbid that, and Yama's strictest
/// mode. By the root.
#[must_use]
pub fn can_be_taken() -> bool {
    // Fails where there is no Yama.
    let _ = rustix::process::set_ptracer(PTracer::Any);
    let root = rustix::process::getpid();
    let Ok(sample) = memfd_create("cohort-sample", MemfdFlags::CLOEXEC) else {
        return false;
    };
    let take = || {
        let target = pidfd_open(root, PidfdFlags::empty())?;
        pidfd_getfd(target, sample.as_raw_fd(), PidfdGetfdFlags::empty())
    };
    // SAFETY: a process with a copy of this one's memory, which makes system calls only and ends; no handler of this
    // process sees its end. The flags ask for nothing else.
    unsafe {
        let child = libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0);
        if child == 0 {
            let result = libc::c_int::from(take().is_err());
            libc::syscall(libc::SYS_exit_group, result);
        }
        let mut status = -1;
        libc::waitpid(child as i32, &raw mut status, libc::__WALL) == child as i32 && status == 0
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

/// Closes a descriptor past the functions that [`hooks`] listens to; nothing happens if the process
/// has none of this number.
fn close(descriptor: i32) {
    // SAFETY: a descriptor of this module's, which nobody uses any more.
    unsafe { libc::syscall(libc::SYS_close, descriptor) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_this_one_starts_takes_descriptors_as_a_thread_does() {
        let sample = memfd_create("sample", MemfdFlags::CLOEXEC).unwrap();
        let target = pidfd_open(rustix::process::getpid(), PidfdFlags::empty());
        let taken = target.and_then(|target| pidfd_getfd(target, sample.as_raw_fd(), PidfdGetfdFlags::empty()));
        assert_eq!(can_be_taken(), taken.is_ok());
    }

    #[test]
    fn the_number_is_that_of_the_kernels_header() {
        let program = format!(
            "printf '#include <linux/kcmp.h>\n_Static_assert(KCMP_FILE == {KCMP_FILE}, \"\");' \
             | cc -x c -fsyntax-only -"
        );
        let checked = std::process::Command::new("sh").args(["-c", &program]).status();
        assert!(checked.unwrap().success());
    }
}
