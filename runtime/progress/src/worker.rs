//! The dedicated workers of a node, which ranks they serve, and how they are woken. What they do is
//! in `dedicated_workers.rs`.

use crate::kernel_thread::{Entry, KernelThread};
use cohort_base::LocalRank;
use cohort_base::settings::WorkerPlacement;
use cohort_base::sync::atomic::{AtomicU32, Ordering};
use cohort_core::{Node, Rank};
use cohort_net::watch;
use cohort_steal::park::ParkSlot;
use cohort_steal::policy::DedicatedWorkers;

/// One worker.
#[derive(Debug)]
pub(crate) struct DedicatedWorker {
    pub(crate) thread: KernelThread,
    pub(crate) slot: ParkSlot,
    /// The rank whose task has, or had last, the thread, plus one.
    pub(crate) host: AtomicU32,
    pub(crate) number: u32,
    pub(crate) node: &'static Node,
}

impl DedicatedWorker {
    pub(crate) fn new(node: &'static Node, number: u32) -> Self {
        Self { thread: KernelThread::new(), slot: ParkSlot::new(), host: AtomicU32::new(0), number, node }
    }

    /// Wakes the worker if it sleeps. The caller has published the work.
    #[inline]
    pub(crate) fn wake(&self) -> bool {
        let woken = self.slot.wake(self.node.barriers());
        if woken && self.node.has_network() {
            watch::interrupt_worker(self.node, self.number);
        }
        woken
    }

    /// Whether there is a thread and it does not sleep: a hint.
    #[inline]
    pub(crate) fn is_awake(&self) -> bool {
        self.thread.is_alive() && !self.slot.is_parked()
    }

    /// Starts the thread with this rank as host.
    ///
    /// # Safety
    /// `run` takes a worker, and looks at `must_stop` in every round.
    #[cold]
    pub(crate) unsafe fn start(&'static self, rank: &Rank, run: Entry) {
        let take_over = || self.host.store(rank.id() + 1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
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
}

/// The worker that serves a rank, of `workers`: ranks in their order (`machine`), or by the NUMA node that they
/// are bound to, whose workers share its ranks. Unbound ranks count as on NUMA node 0.
pub(crate) fn number_for(
    rank: LocalRank,
    ranks: u32,
    workers: u32,
    placement: WorkerPlacement,
    numa: impl Fn(LocalRank) -> u32,
) -> u32 {
    if placement == WorkerPlacement::Machine {
        return (u64::from(rank) * u64::from(workers) / u64::from(ranks)) as u32;
    }
    let mine = numa(rank);
    let is_first = |id: LocalRank| (0..id).all(|other| numa(other) != numa(id));
    let domains = (0..ranks).filter(|&id| is_first(id)).count() as u32;
    let domain = (0..ranks).filter(|&id| is_first(id) && numa(id) < mine).count() as u32;
    let place = (0..rank).filter(|&id| numa(id) == mine).count() as u32;
    // Workers domain, domain + domains, domain + 2 domains, ... serve this domain.
    let serving = workers.saturating_sub(domain).div_ceil(domains).max(1);
    (domain + place % serving * domains) % workers
}

/// Which of the dedicated workers of a kind serves a rank.
pub(crate) fn number_of(node: &Node, rank: LocalRank, dedicated_workers: DedicatedWorkers) -> u32 {
    let workers = match dedicated_workers {
        DedicatedWorkers::Ghosts => node.settings().ghosts,
        DedicatedWorkers::None | DedicatedWorkers::Helpers => node.settings().helpers,
    };
    let placement = node.settings().worker_placement;
    number_for(rank, node.size(), workers, placement, |id| node.numa_of(id))
}

#[cfg(test)]
mod tests;
