//! Starting and stopping what the policies of a rank need.

use crate::parts::OfRank as _;
use crate::poller;
use cohort_base::settings::Progress;
use cohort_core::policies::Change;
use cohort_core::rank::Rank;
use cohort_steal::policy::{Capabilities, DedicatedWorkers};

/// Starts what the policy gives every rank (a polling thread under `COHORT_PROGRESS=thread`). By
/// the rank's own task, at initialisation, once. Without memory or threads for it the rank
/// simply progresses inside its own calls.
pub(crate) fn begin(rank: &'static Rank) {
    let change = rank.policies().lock();
    change.open(true);
    let capabilities = change.needed();
    rank.furnish(capabilities);
    change.settle(capabilities);
    start(rank, capabilities);
}

/// Gives the rank another policy of its own, from now on (`MPIX_Progress_set`). By the rank's own tasks. Receives
/// that are left behind already are not watched anew; the next one that is, and the next wait, begin
/// to use the policy.
pub fn set_policy(rank: &'static Rank, progress: Progress) {
    let change = rank.policies().lock();
    change.set_own(progress);
    apply(rank, &change);
}

/// A communicator or window of the rank exchanges its own policy for another, as [`set_policy`];
/// `None` is that of the rank.
pub fn exchange_policy(rank: &'static Rank, old: Option<Progress>, new: Option<Progress>) {
    let change = rank.policies().lock();
    if let Some(progress) = new {
        change.adopt(progress);
    }
    if let Some(progress) = old {
        change.renounce(progress);
    }
    apply(rank, &change);
}

/// Lets the rank have what its policies need, and nothing else.
fn apply(rank: &'static Rank, change: &Change<'_>) {
    let (before, capabilities) = (rank.capabilities(), change.needed());
    if capabilities == before || !change.is_open() {
        return;
    }
    stop(rank, before);
    rank.furnish(capabilities);
    change.settle(capabilities);
    start(rank, capabilities);
}

/// Starts a thread, a signal, dedicated workers.
fn start(rank: &'static Rank, capabilities: Capabilities) {
    poller::start(rank);
    ensure_dedicated_workers(rank);
    if capabilities.may_interrupt() {
        rank.interrupter().install();
        rank.interrupter().enable(capabilities.interrupts_always());
    }
}

/// Gives a rank whose policy adapts a helper besides what it has. By a thread of the rank, which may hold the claim;
/// `false`: another thread changes the policies now.
pub(crate) fn add_helper(rank: &'static Rank) -> bool {
    let Some(change) = rank.policies().try_lock() else {
        return false;
    };
    change.add(Capabilities::HELPER);
    let capabilities = change.needed();
    rank.furnish(capabilities);
    change.settle(capabilities);
    poller::start(rank);
    ensure_dedicated_workers(rank);
    true
}

/// Starts the dedicated workers of the rank that do not run. By a task of the rank.
pub(crate) fn ensure_dedicated_workers(rank: &Rank) {
    for dedicated_workers in [DedicatedWorkers::Ghosts, DedicatedWorkers::Helpers] {
        if let Some(worker) = rank.worker_of(dedicated_workers) {
            worker.ensure(rank);
        }
    }
}

/// Stops what [`start`] started.
fn stop(rank: &'static Rank, capabilities: Capabilities) {
    poller::stop(rank);
    for dedicated_workers in [DedicatedWorkers::Ghosts, DedicatedWorkers::Helpers] {
        if let Some(worker) = rank.worker_of(dedicated_workers) {
            worker.leave(rank);
        }
    }
    // Taking the claim also does the posts that no dedicated worker came to.
    let claim = rank.enter();
    if capabilities.may_interrupt() {
        rank.interrupter().remove();
    }
    drop(claim);
}

/// Stops what [`begin`] started. By the rank's own task, at finalisation.
pub(crate) fn end(rank: &'static Rank) {
    let change = rank.policies().lock();
    change.open(false);
    stop(rank, rank.capabilities());
}
