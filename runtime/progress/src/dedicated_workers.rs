//! Dedicated workers of a node: ghosts (CasperII) and helpers (SmartInterrupts).
//!
//! A worker is a thread without user code that serves some of the node's ranks. It belongs to the task of one of
//! them, its *host*. When the host ends, the next rank that leaves a receive behind takes its
//! place. Until then, and when the kernel has no thread for us, ranks progress in their own calls.
//!
//! Like a waiting rank, a worker takes turns while something moves, and parks after a while: at once where ranks
//! and workers outnumber CPUs. Whoever has work for it wakes it ([`DedicatedWorker::wake`]), after
//! publishing that work.

use crate::helper;
use crate::parts::OfRank as _;
use crate::round::{self, Round};
use crate::worker::DedicatedWorker;
use cohort_base::boot::CpuLocation;
use cohort_base::settings::WorkerPlacement;
use cohort_base::sync::atomic::Ordering;
use cohort_base::sync::pause;
use cohort_core::Backoff;
use cohort_core::rank::Rank;
use cohort_core::wait::UNSURE_SLEEP;
use cohort_net::watch;
use cohort_steal::park::Ticket;
use cohort_steal::policy::DedicatedWorkers;
use core::ffi::c_void;
use core::time::Duration;

impl DedicatedWorker {
    /// Starts the thread with this rank as host, if it has none.
    #[inline]
    pub(crate) fn ensure(&'static self, rank: &Rank) {
        if !self.thread.is_alive() {
            // SAFETY: `run` takes a worker, and looks at `must_stop` in every round.
            unsafe { self.start(rank, run) };
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
            let capabilities = rank.capabilities();
            if capabilities.has_helper() && rank.dedicated_number(DedicatedWorkers::Helpers) == self.number {
                result = result.or(helper::serve(rank, host));
            }
            if capabilities.has_ghost() && rank.dedicated_number(DedicatedWorkers::Ghosts) == self.number {
                result = result.or(serve(rank, host));
            }
        }
        result
    }

    /// Sleeps until there is work. With a network it watches that; where others do, they wake it, but may leave
    /// without a word, so then it sleeps only shortly.
    fn park(&self) {
        let ticket = self.slot.prepare(self.node.barriers());
        let round = match self.thread.must_stop() {
            true => Round::Moved,
            false => self.round(),
        };
        let limit = match round {
            Round::Moved => return self.slot.cancel(ticket),
            Round::Unsure => Some(UNSURE_SLEEP),
            Round::Nothing => None,
        };
        let ticket = match self.watch(ticket, limit) {
            Ok(()) => return,
            Err(ticket) => ticket,
        };
        let limit = limit.or(self.node.has_network().then_some(UNSURE_SLEEP));
        self.slot.sleep(ticket, limit);
    }

    /// Sleeps as the watcher of the network, if nobody else is.
    fn watch(&self, ticket: Ticket, limit: Option<Duration>) -> Result<(), Ticket> {
        let Some(host) = self.host.load(Ordering::Relaxed).checked_sub(1) else {
            return Err(ticket);
        };
        let worker = watch::Worker { number: self.number, host: self.node.rank(host), slot: &self.slot };
        watch::sleep_of_worker(worker, ticket, limit, || self.round() == Round::Moved)
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
    round::progress(rank, host)
}

/// The thread.
///
/// # Safety
/// `worker` is a [`DedicatedWorker`].
unsafe extern "C" fn run(worker: *const c_void) {
    // SAFETY: `start` passed a worker, which lives for ever.
    let worker = unsafe { &*worker.cast::<DedicatedWorker>() };
    pin(worker);
    let mut backoff = Backoff::of(worker.node);
    while !worker.thread.must_stop() {
        if worker.round() == Round::Moved {
            backoff.renew();
        } else if backoff.is_over() {
            worker.park();
            backoff.renew();
        } else if !backoff.is_polite(worker.node) {
            pause();
        }
    }
}

/// Binds the worker's thread to a CPU that no rank is bound to, on the NUMA node of its ranks unless the
/// placement is `machine`. Where there is none the thread runs where the kernel puts it.
fn pin(worker: &DedicatedWorker) {
    let node = worker.node;
    let anywhere = node.settings().worker_placement == WorkerPlacement::Machine;
    let numa = (0..node.size())
        .find(|&id| {
            let rank = node.rank(id);
            let serves = |dedicated_workers| {
                rank.is_served_by(dedicated_workers) && rank.dedicated_number(dedicated_workers) == worker.number
            };
            serves(DedicatedWorkers::Ghosts) || serves(DedicatedWorkers::Helpers)
        })
        .map_or(0, |id| node.numa_of(id));
    let is_free = |place: &&CpuLocation| (anywhere || place.numa == numa) && !node.has_rank_on(place);
    let is_bound = (0..node.size()).any(|id| node.rank(id).boot().cpu >= 0);
    let mut free = node.places().iter().filter(is_free);
    if is_bound && let Some(place) = free.nth(worker.number as usize).or_else(|| node.places().iter().find(is_free)) {
        let mut cpus = rustix::thread::CpuSet::new();
        cpus.set(place.cpu as usize);
        // A refusal leaves the thread where it is.
        let _ = rustix::thread::sched_setaffinity(None, &cpus);
    }
}
