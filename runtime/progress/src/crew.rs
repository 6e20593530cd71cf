//! Dedicated workers of a node: ghosts (CasperII) and helpers (SmartInterrupts).
//!
//! A worker is a thread without user code that serves some of the node's ranks. It belongs to the task of one of
//! them, its *host*. When the host ends, the next rank that leaves a receive behind takes its
//! place. Until then, and when the kernel has no thread for us, ranks progress in their own calls.
//!
//! Like a waiting rank, a worker takes turns while something moves, and parks after a while: at once where ranks
//! and workers outnumber CPUs. Whoever has work for it wakes it ([`CrewWorker::wake`]), after
//! publishing that work.

use crate::helper;
use crate::kernel_thread::KernelThread;
use crate::parts::OfRank as _;
use cohort_base::LocalRank;
use cohort_base::boot::CpuPlace;
use cohort_base::settings::CrewPlacement;
use cohort_base::sync::atomic::{AtomicU32, Ordering};
use cohort_base::sync::pause;
use cohort_core::Patience;
use cohort_core::node::Node;
use cohort_core::rank::Rank;
use cohort_core::steal::Thief;
use cohort_core::wait::UNSURE_SLEEP;
use cohort_steal::TaskKind;
use cohort_steal::park::ParkSlot;
use cohort_steal::policy::{Crew, Outcome, Victims};
use core::ffi::c_void;

/// One worker.
#[derive(Debug)]
pub(crate) struct CrewWorker {
    thread: KernelThread,
    slot: ParkSlot,
    /// The rank whose task has, or had last, the thread, plus one.
    host: AtomicU32,
    number: u32,
    node: &'static Node,
}

/// What a round over all served ranks found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    Moved,
    /// Nothing now, but a claim was taken, or something without events is under way: look again soon.
    Unsure,
    Nothing,
}

impl Round {
    /// The more hopeful of both.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Moved, _) | (_, Self::Moved) => Self::Moved,
            (Self::Unsure, _) | (_, Self::Unsure) => Self::Unsure,
            _ => Self::Nothing,
        }
    }
}

impl CrewWorker {
    pub(crate) fn new(node: &'static Node, number: u32) -> Self {
        Self {
            thread: KernelThread::new(),
            slot: ParkSlot::new(),
            host: AtomicU32::new(0),
            number,
            node,
        }
    }

    /// Wakes the worker if it sleeps. The caller has published the work.
    #[inline]
    pub(crate) fn wake(&self) -> bool {
        self.slot.wake(self.node.barriers())
    }

    /// Whether there is a thread and it does not sleep: a hint.
    #[inline]
    pub(crate) fn is_awake(&self) -> bool {
        self.thread.is_alive() && !self.slot.is_parked()
    }

    /// Starts the thread with this rank as host, if it has none.
    #[inline]
    pub(crate) fn ensure(&'static self, rank: &Rank) {
        if !self.thread.is_alive() {
            self.start(rank);
        }
    }

    #[cold]
    fn start(&'static self, rank: &Rank) {
        let take_over = || self.host.store(rank.id() + 1, Ordering::Relaxed);
        // SAFETY: `run` takes a worker, and looks at `must_stop` in every round.
        unsafe { self.thread.start(run, self, take_over) };
    }

    /// The rank ends: if it is the host, the thread ends too.
    pub(crate) fn leave(&self, rank: &Rank) {
        if self.host.load(Ordering::Relaxed) == rank.id() + 1 {
            self.thread.stop(|| {
                self.wake();
            });
        }
    }

    /// One look at every rank that this worker serves.
    fn round(&self) -> Round {
        let Some(host) = self.host.load(Ordering::Relaxed).checked_sub(1) else {
            return Round::Nothing;
        };
        let host = self.node.rank(host);
        let mut result = Round::Nothing;
        for id in 0..self.node.size() {
            let rank = self.node.rank(id);
            let means = rank.means();
            if means.has_helper() && rank.crew_number(Crew::Helpers) == self.number {
                result = result.or(helper::serve(rank, host));
            }
            if means.has_ghost() && rank.crew_number(Crew::Ghosts) == self.number {
                result = result.or(serve(rank, host));
            }
        }
        result
    }

    /// Sleeps until there is work. With a network, whose events wake nobody here, only shortly.
    fn park(&self) {
        let ticket = self.slot.prepare(self.node.barriers());
        let round = match self.thread.must_stop() {
            true => Round::Moved,
            false => self.round(),
        };
        match round {
            Round::Moved => self.slot.cancel(ticket),
            Round::Nothing if !self.node.has_network() => {
                self.slot.sleep(ticket, None);
            }
            Round::Nothing | Round::Unsure => {
                self.slot.sleep(ticket, Some(UNSURE_SLEEP));
            }
        }
    }
}

/// A ghost's look at one rank: what it left to us to post, else a bounded piece of its progress if it expects any.
fn serve(rank: &Rank, host: &Rank) -> Round {
    if rank.has_posts() {
        return match rank.try_steal(host.id()) {
            Some(claim) => {
                drop(claim);
                Round::Moved
            }
            None => Round::Unsure,
        };
    }
    progress(rank, host)
}

/// A bounded piece of a rank's progress, by a worker at this host, if it expects any.
pub(crate) fn progress(rank: &Rank, host: &Rank) -> Round {
    let victims = Thief::of(host);
    let mut result = Round::Nothing;
    for kind in TaskKind::ALL {
        if !victims.is_available(rank.id(), kind) {
            continue;
        }
        match victims.try_progress(rank.id(), kind) {
            Outcome::Progressed { .. } => return Round::Moved,
            Outcome::Busy => result = Round::Unsure,
            Outcome::Idle => {}
        }
    }
    result
}

/// The thread.
///
/// # Safety
/// `worker` is a [`CrewWorker`].
unsafe extern "C" fn run(worker: *const c_void) {
    // SAFETY: `start` passed a worker, which lives for ever.
    let worker = unsafe { &*worker.cast::<CrewWorker>() };
    pin(worker);
    let mut patience = Patience::of(worker.node);
    while !worker.thread.must_stop() {
        if worker.round() == Round::Moved {
            patience.renew();
        } else if patience.is_over() {
            worker.park();
            patience.renew();
        } else {
            pause();
        }
    }
}

/// The worker that serves a rank, of `workers`: ranks in their order (`machine`), or by the NUMA node that they
/// are bound to, whose workers share its ranks. Unbound ranks count as on NUMA node 0.
pub(crate) fn number_for(
    rank: LocalRank,
    ranks: u32,
    workers: u32,
    placement: CrewPlacement,
    numa: impl Fn(LocalRank) -> u32,
) -> u32 {
    if placement == CrewPlacement::Machine {
        return (u64::from(rank) * u64::from(workers) / u64::from(ranks)) as u32;
    }
    let mine = numa(rank);
    let is_first = |id: LocalRank| (0..id).all(|other| numa(other) != numa(id));
    let domains = (0..ranks).filter(|&id| is_first(id)).count() as u32;
    let domain = (0..ranks)
        .filter(|&id| is_first(id) && numa(id) < mine)
        .count() as u32;
    let place = (0..rank).filter(|&id| numa(id) == mine).count() as u32;
    // Workers domain, domain + domains, domain + 2 domains, ... serve this domain.
    let serving = workers.saturating_sub(domain).div_ceil(domains).max(1);
    (domain + place % serving * domains) % workers
}

/// Which of the dedicated workers of a kind serves a rank.
pub(crate) fn number_of(node: &Node, rank: LocalRank, crew: Crew) -> u32 {
    let workers = match crew {
        Crew::Ghosts => node.settings().ghosts,
        Crew::None | Crew::Helpers => node.settings().helpers,
    };
    let placement = node.settings().crew_placement;
    number_for(rank, node.size(), workers, placement, |id| node.numa_of(id))
}

/// Binds the worker's thread to a CPU that no rank is bound to, on the NUMA node of its ranks unless the
/// placement is `machine`. Where there is none the thread runs where the kernel puts it.
fn pin(worker: &CrewWorker) {
    let node = worker.node;
    let anywhere = node.settings().crew_placement == CrewPlacement::Machine;
    let numa = (0..node.size())
        .find(|&id| {
            let rank = node.rank(id);
            let serves = |crew| rank.is_served_by(crew) && rank.crew_number(crew) == worker.number;
            serves(Crew::Ghosts) || serves(Crew::Helpers)
        })
        .map_or(0, |id| node.numa_of(id));
    let is_free = |place: &&CpuPlace| (anywhere || place.numa == numa) && !node.has_rank_on(place);
    let is_bound = (0..node.size()).any(|id| node.rank(id).boot().cpu >= 0);
    let mut free = node.places().iter().filter(is_free);
    if is_bound
        && let Some(place) = free
            .nth(worker.number as usize)
            .or_else(|| node.places().iter().find(is_free))
    {
        let mut cpus = rustix::thread::CpuSet::new();
        cpus.set(place.cpu as usize);
        // A refusal leaves the thread where it is.
        let _ = rustix::thread::sched_setaffinity(None, &cpus);
    }
}

#[cfg(test)]
mod tests;
