//! Starting and stopping what the policies of a rank need.

use crate::parts::OfRank as _;
use crate::poller;
use cohort_base::settings::Progress;
use cohort_core::policies::Change;
use cohort_core::rank::Rank;
use cohort_steal::policy::{Crew, Means};

/// Starts what the policy gives every rank (a polling thread under `COHORT_PROGRESS=thread`). By
/// the rank's own task, at initialisation, once. Without memory or threads for it the rank
/// simply progresses inside its own calls.
pub(crate) fn begin(rank: &'static Rank) {
    let change = rank.policies().lock();
    change.open(true);
    let means = change.needed();
    rank.furnish(means);
    change.settle(means);
    start(rank, means);
}

/// Gives the rank another policy of its own, from now on (`MPIX_Progress_set`). By the rank's own tasks. Receives
/// that are left behind already are not watched anew; the next one that is, and the next wait, begin
/// to use the policy.
pub fn set_policy(rank: &'static Rank, progress: Progress) {
    let change = rank.policies().lock();
    change.set_own(progress);
    apply(rank, &change);
}

/// A communicator or window of the rank exchanges its own policy for another, as [`set_policy`]; `None` is that of the rank.
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
    let (before, means) = (rank.means(), change.needed());
    if means == before || !change.is_open() {
        return;
    }
    stop(rank, before);
    rank.furnish(means);
    change.settle(means);
    start(rank, means);
}

/// Starts a thread, a signal, dedicated workers.
fn start(rank: &'static Rank, means: Means) {
    poller::start(rank);
    ensure_crew(rank);
    if means.may_interrupt() {
        rank.parasite().install();
        rank.parasite().enable(means.interrupts_always());
    }
}

/// Gives a rank whose policy adapts a helper besides what it has. By a thread of the rank, which may hold the claim;
/// `false`: another thread changes the policies now.
pub(crate) fn add_helper(rank: &'static Rank) -> bool {
    let Some(change) = rank.policies().try_lock() else {
        return false;
    };
    change.add(Means::HELPER);
    let means = change.needed();
    rank.furnish(means);
    change.settle(means);
    poller::start(rank);
    ensure_crew(rank);
    true
}

/// Starts the dedicated workers of the rank that do not run. By a task of the rank.
pub(crate) fn ensure_crew(rank: &Rank) {
    for crew in [Crew::Ghosts, Crew::Helpers] {
        if let Some(worker) = rank.worker_of(crew) {
            worker.ensure(rank);
        }
    }
}

/// Stops what [`start`] started.
fn stop(rank: &'static Rank, means: Means) {
    poller::stop(rank);
    for crew in [Crew::Ghosts, Crew::Helpers] {
        if let Some(worker) = rank.worker_of(crew) {
            worker.leave(rank);
        }
    }
    // Taking the claim also does the posts that no dedicated worker came to.
    let claim = rank.enter();
    if means.may_interrupt() {
        rank.parasite().remove();
    }
    drop(claim);
}

/// Stops what [`begin`] started. By the rank's own task, at finalisation.
pub(crate) fn end(rank: &'static Rank) {
    let change = rank.policies().lock();
    change.open(false);
    stop(rank, rank.means());
}
