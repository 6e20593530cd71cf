//! Looks at the ranks while somebody watches the job.
//!
//! How much of its time a rank spends in MPI follows from many looks: each tells whether it sleeps in MPI, or whether
//! a task holds its claim. A rank that nobody watches is not looked at.

use super::Job;
use super::answer::Process;
use cohort_base::boot::Lifecycle;
use cohort_base::live::{ASLEEP, CLAIMED};
use pip_insight::control::sample::{NodeSample, RankRow, Stage};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Time between two looks.
const PERIOD: Duration = Duration::from_millis(4);

/// Looks after which calls of ranks that are new to MPI are observed too.
const RENEWAL: u64 = 250;

/// What was seen of a rank.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    in_mpi: u64,
    asleep: u64,
}

/// What was seen of all ranks of the node.
#[derive(Debug)]
pub(super) struct Watch {
    begun: Instant,
    next: Option<Instant>,
    looks: u64,
    ranks: Vec<Seen>,
}

impl Watch {
    /// Nothing seen yet.
    pub(super) fn new() -> Self {
        Self { begun: Instant::now(), next: None, looks: 0, ranks: Vec::new() }
    }

    /// When to look again, if somebody watches.
    pub(super) fn until(&self) -> Option<Instant> {
        self.next
    }
}

impl Job<'_> {
    /// Looks at all ranks, if somebody watches and it is time.
    pub(super) fn look(&mut self) {
        if !self.control.is_watched() {
            self.leave_others();
        }
        if !self.control.is_watched() && !self.wide.is_watched() {
            if self.watch.next.take().is_some() {
                self.spawner.node.watch(false);
            }
            return;
        }
        let now = Instant::now();
        // Ranks that have come to MPI since are told too.
        if self.watch.next.is_none() || self.watch.looks.is_multiple_of(RENEWAL) {
            self.spawner.node.watch(true);
        }
        if self.watch.next.is_some_and(|next| now < next) {
            return;
        }
        self.watch.next = Some(now + PERIOD);
        self.watch.looks += 1;
        self.watch.ranks.resize(self.spawner.ranks.len(), Seen::default());
        for (rank, seen) in self.watch.ranks.iter_mut().enumerate() {
            let glance = self.spawner.node.glance(rank);
            seen.asleep += u64::from(glance & ASLEEP != 0);
            seen.in_mpi += u64::from(glance & (ASLEEP | CLAIMED) != 0);
        }
    }

    /// What the ranks of this node have done up to now.
    pub(super) fn sample(&self) -> NodeSample {
        NodeSample {
            node: self.membership.world().place.index.into(),
            time_us: self.watch.begun.elapsed().as_micros() as u64,
            looks: self.watch.looks,
            memory_kib: match self.spawner.node.has_image() {
                true => resident_kib(std::process::id() as i32),
                false => 0,
            },
            silent: String::new(),
            ranks: (0..self.spawner.ranks.len()).map(|rank| self.row(rank)).collect(),
        }
    }

    fn row(&self, rank: usize) -> RankRow {
        let pid = self.spawner.ranks[rank].pid;
        let process = match self.alive.contains_key(&pid) {
            true => Process::read(pid),
            false => Process::default(),
        };
        let node = &self.spawner.node;
        let counts = node.sample(rank);
        let seen = self.watch.ranks.get(rank).copied().unwrap_or_default();
        // Most ranks help nobody.
        let victims = if counts.hits > 0 { self.spawner.ranks.len() } else { 0 };
        let helped = (0..victims).filter_map(|victim| {
            let times = node.hits(rank, victim);
            (times > 0).then(|| (self.spawner.numbers[victim].into(), times))
        });
        RankRow {
            rank: self.spawner.numbers[rank].into(),
            pid: pid as u64,
            stage: match process.state {
                None | Some('Z' | 'X') => Stage::Ended,
                Some(_) => self.stage(rank),
            },
            state: process.state.map_or_else(String::new, String::from),
            call: counts.call().to_owned(),
            cpu_ms: process.cpu_ms,
            calls: counts.calls,
            mpi_us: counts.mpi_ns / 1000,
            messages: counts.messages,
            bytes: counts.bytes,
            in_mpi: seen.in_mpi,
            asleep: seen.asleep,
            parks: counts.parks,
            wakes: counts.wakes,
            hits: counts.hits,
            stolen_bytes: counts.stolen_bytes,
            helped: helped.collect(),
            memory_kib: match node.has_image() {
                true => counts.heap_bytes >> 10,
                false => resident_kib(pid),
            },
        }
    }

    /// How far a rank that lives has come in its use of MPI.
    pub(super) fn stage(&self, rank: usize) -> Stage {
        let lifecycle = &self.spawner.node.ranks()[rank].lifecycle;
        let stage = lifecycle.load(Ordering::Acquire);
        match stage {
            _ if self.spawner.served.server.is_some() => Stage::Alone,
            stage if stage == Lifecycle::Initialized as u32 => Stage::Initialized,
            stage if stage == Lifecycle::Finalized as u32 => Stage::Finalized,
            _ => Stage::Fresh,
        }
    }
}

/// Memory of a process, in KiB.
fn resident_kib(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = text.split_whitespace().nth(1);
    let pages = pages.and_then(|pages| pages.parse::<u64>().ok());
    // SAFETY: no condition.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.unwrap_or(0) * u64::try_from(page).unwrap_or(4096) / 1024
}
