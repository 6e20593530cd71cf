//! What ranks that are started together have in common: their places in the address space, what each sets up, and who
//! answers them.

use super::{Opened, refuse};
use crate::launch::membership::Membership;
use crate::launch::prepare::Prepared;
use crate::launch::signals::ranks_ignore_pipe;
use cohort_manager::door::Door;
use cohort_manager::server::Server;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::sys::signal::SigSet;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use pip_ground::Refusal;
use pip_insight::fault::RankMemory;
use pip_load::boot::RankFacts;
use pip_load::image;
use pip_load::task::crash::{self, CrashRecord, HANDLER_STACK};
use pip_load::task::debug::DebugRanks;
use pip_load::task::stack::{InheritedAuxiliary, StackArea};
use pip_load::task::start::StartPlan;
use std::io;
use std::os::fd::OwnedFd;

/// Stack of a rank when RLIMIT_STACK sets no limit. Only touched pages cost memory.
pub const UNLIMITED_STACK: usize = 1 << 30;

/// A limit.
type SoftAndHard = (u64, u64);

/// The places of ranks in this address space.
pub struct Space {
    /// Their stacks.
    pub stacks: StackArea,
    /// Where the stacks of their fault handlers begin.
    pub handler_stacks: usize,
    /// Where their faults are noted.
    pub records: &'static [CrashRecord],
    /// What debuggers find of them.
    pub debug: DebugRanks,
    /// What the kernel has told this process, and these tell their programs.
    pub auxiliary: InheritedAuxiliary,
    /// What the root knows of the memory of each that was started.
    pub memory: Vec<RankMemory>,
}

impl Space {
    /// Room for so many, of `capacity` that there may be one day, with stacks of the size that the user wants; also
    /// gives their limit for that.
    ///
    /// # Errors
    /// There is no room.
    pub fn reserve(
        (count, capacity): (usize, usize),
        wanted_stack: Option<usize>,
    ) -> Result<(Self, Option<SoftAndHard>), Refusal> {
        let (size, limit) = stack_size(wanted_stack);
        let no_room = format!("no room for {count} stacks of {size} bytes");
        let stacks = StackArea::reserve(count, size).map_err(|error| refuse(&no_room, &error))?;
        // Each rank makes its own writable, so that only what is used counts towards a limit.
        let handler_stacks = image::reserve(capacity * HANDLER_STACK, libc::PROT_NONE, libc::MAP_NORESERVE)
            .map_err(|error| refuse("no room for signal stacks", &error))?;
        let auxiliary = InheritedAuxiliary::of_this_process();
        let this = Self {
            stacks,
            handler_stacks: handler_stacks as usize,
            records: crash::make_records(capacity)
                .map_err(|error| refuse("no room for the records of faults", &error))?,
            debug: DebugRanks::reserve(capacity).map_err(|error| refuse("no room for what debuggers find", &error))?,
            auxiliary: auxiliary.map_err(|error| refuse("cannot read /proc/self/auxv", &error))?,
            memory: Vec::with_capacity(count),
        };
        Ok((this, limit))
    }
}

impl Space {
    /// Room for so many more, from rank `first` on.
    ///
    /// # Errors
    /// There is none.
    pub fn extend(&mut self, first: usize, count: usize) -> io::Result<()> {
        self.stacks.extend(first, count)
    }
}

/// What each rank sets up.
pub(super) struct Setup {
    pub(super) isolated: bool,
    pub(super) own_sessions: bool,
    pub(super) signal_mask: u64,
    pub(super) ignores_pipe: bool,
    /// Descriptors of the root's that ranks keep.
    kept: Vec<u32>,
    /// Ranges of descriptors to close.
    close: &'static [(u32, u32)],
    pub(super) limits: Vec<(u32, libc::rlimit64)>,
}

impl Setup {
    /// With this signal mask, these descriptors of the root's, and limits of stacks and open files where they are not
    /// the root's.
    pub(super) fn new(job: &Prepared, mask: &SigSet, kept: Vec<u32>, limits: [Option<SoftAndHard>; 2]) -> Self {
        let limits = [libc::RLIMIT_STACK, libc::RLIMIT_NOFILE].into_iter().zip(limits);
        let limits = limits.filter_map(|(resource, limit)| Some(limit_entry(resource, limit?)));
        Self {
            isolated: job.spaces.isolated,
            own_sessions: job.spaces.own_sessions,
            signal_mask: kernel_mask(mask),
            ignores_pipe: ranks_ignore_pipe(),
            close: gaps(kept.clone()).leak(),
            kept,
            limits: limits.collect(),
        }
    }

    /// Ranges of descriptors that a rank closes, which keeps only these if a wrapper has closed others.
    pub(super) fn closed(&self, kept: Option<&[u32]>) -> &'static [(u32, u32)] {
        match kept.filter(|kept| kept.len() < self.kept.len()) {
            None => self.close,
            Some(kept) => gaps(kept.to_vec()).leak(),
        }
    }
}

/// Who answers what ranks ask, and what they start.
pub struct Served {
    /// The process manager of ranks with address spaces of their own, if they use MPI.
    pub server: Option<Server>,
    /// Where programs that ranks start ask for their place, if the job uses MPI.
    pub door: Option<Door>,
    /// The ranks' ends of their connections with the server.
    pub connections: std::vec::IntoIter<OwnedFd>,
}

impl Served {
    /// For ranks of which these are the facts.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new(job: &Prepared, membership: &Membership, facts: &[RankFacts]) -> Result<Self, Refusal> {
        let door = open_door(job, membership)?;
        let (server, connections) = serve_isolated(job, facts, membership.world().homes.len())?;
        Ok(Self { server, door, connections: connections.into_iter() })
    }
}

/// Descriptors of the root's that a rank takes.
pub(super) struct Lent {
    pub(super) pid: i32,
    pub(super) plan: &'static StartPlan,
    pub(super) _descriptors: (Option<OwnedFd>, Option<Opened>),
}

impl Lent {
    /// Whether the rank, if it has not ended, still needs the root's descriptors.
    pub(super) fn is_needed(&self) -> bool {
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        let lives = || waitid(Id::Pid(Pid::from_raw(self.pid)), look) == Ok(WaitStatus::StillAlive);
        !self.plan.has_parted() && lives()
    }
}

/// Where programs that ranks start ask for their place, if they may use MPI.
fn open_door(job: &Prepared, membership: &Membership) -> Result<Option<Door>, Refusal> {
    let gathers = job.spaces.wrapper.is_some() && membership.is_alone();
    let door = job.libraries.is_some().then(|| Door::open(gathers));
    let door = door.transpose();
    door.map_err(|error| refuse("cannot listen for what ranks start", &error))
}

/// The process manager of isolated ranks that may use MPI, and their ends of the connections.
fn serve_isolated(
    job: &Prepared,
    facts: &[RankFacts],
    world_ranks: usize,
) -> Result<(Option<Server>, Vec<OwnedFd>), Refusal> {
    if !job.spaces.isolated || job.libraries.is_none() {
        return Ok((None, Vec::new()));
    }
    let numbers = facts.iter().map(|fact| fact.world_rank).collect();
    let applications = facts.iter().map(|fact| fact.app_number).collect();
    let (server, ends) = Server::new(numbers, applications, world_ranks as u32)
        .map_err(|error| refuse("cannot connect with ranks", &error))?;
    // What a wrapper starts comes through the door; a pip-exec that it starts has a job of its own.
    let ends = if job.spaces.wrapper.is_some() { Vec::new() } else { ends };
    Ok((Some(server), ends))
}

/// The descriptors, beyond the first three, that `execve` would keep, were it called now.
pub fn kept_on_exec() -> io::Result<Vec<u32>> {
    let mut kept = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")?.flatten() {
        let Some(Ok(fd)) = entry.file_name().to_str().map(str::parse::<i32>) else {
            continue;
        };
        // SAFETY: reading the flags of a descriptor, even of a closed one, is harmless.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
        if fd > 2 && flags >= 0 && flags & libc::FD_CLOEXEC == 0 {
            kept.push(fd as u32);
        }
    }
    Ok(kept)
}

/// The ranges between the descriptors in `kept`, from 3 on.
fn gaps(mut kept: Vec<u32>) -> Vec<(u32, u32)> {
    kept.sort_unstable();
    let mut gaps = Vec::new();
    let mut first = 3;
    for fd in kept {
        if fd > first {
            gaps.push((first, fd - 1));
        }
        first = fd + 1;
    }
    gaps.push((first, u32::MAX));
    gaps
}

fn limit_entry(resource: libc::__rlimit_resource_t, (soft, hard): SoftAndHard) -> (u32, libc::rlimit64) {
    (resource, libc::rlimit64 { rlim_cur: soft, rlim_max: hard })
}

/// The size of each stack, and the ranks' limit if the user wants a size: from it libc derives the bounds of the main
/// stack and the size of thread stacks.
fn stack_size(wanted: Option<usize>) -> (usize, Option<SoftAndHard>) {
    let (soft, hard) = getrlimit(Resource::RLIMIT_STACK).unwrap_or((8 << 20, RLIM_INFINITY));
    match wanted {
        Some(size) => (size, Some(((size as u64).min(hard), hard))),
        None if soft == RLIM_INFINITY => (UNLIMITED_STACK, None),
        None => ((soft as usize).clamp(1 << 16, 1 << 36), None),
    }
}

/// A signal set as the kernel's word: signal n is bit n - 1.
fn kernel_mask(set: &SigSet) -> u64 {
    set.iter().fold(0, |mask, signal| mask | 1 << (signal as i32 - 1))
}

/// CPUs as words of a kernel mask.
pub(super) fn mask_words(cpus: &[u32]) -> Vec<u64> {
    let last = cpus.iter().max().copied().unwrap_or(0);
    let mut words = vec![0; last as usize / 64 + 1];
    for &cpu in cpus {
        words[cpu as usize / 64] |= 1 << (cpu % 64);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_between_kept_ones_are_closed() {
        assert_eq!(gaps(vec![]), [(3, u32::MAX)]);
        assert_eq!(gaps(vec![7, 3, 4]), [(5, 6), (8, u32::MAX)]);
    }

    #[test]
    fn masks_are_words_of_the_kernel() {
        assert_eq!(mask_words(&[0, 65]), [1, 2]);
        let mut set = SigSet::empty();
        set.add(nix::sys::signal::Signal::SIGHUP);
        assert_eq!(kernel_mask(&set), 1);
    }

    #[test]
    fn a_wanted_stack_becomes_the_limit() {
        let (size, limit) = stack_size(Some(1 << 20));
        assert_eq!((size, limit.map(|(soft, _)| soft)), (1 << 20, Some(1 << 20)));
        let (size, limit) = stack_size(None);
        assert!(size >= 1 << 16 && limit.is_none());
    }
}
