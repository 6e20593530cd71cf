//! The beginning and the end of a rank.

use crate::arch;
use crate::coll::wide;
use crate::net;
use crate::policies::Change;
use crate::poller;
use crate::rank::Rank;
use crate::wait::{self, WaitKind};
use cohort_base::Peer;
use cohort_base::boot::RankBoot;
use cohort_base::settings::Progress;
use cohort_base::sync::atomic::Ordering;
use cohort_base::text::say;
use cohort_steal::policy::{Crew, Means};

/// Starts what the policy gives every rank (a polling thread under `COHORT_PROGRESS=thread`). By
/// the rank's own task, at initialisation, once. Without memory or threads for it the rank
/// simply progresses inside its own calls.
pub fn begin(rank: &'static Rank) {
    net::open(rank);
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

/// Ends the rank's use of the network, once all it has sent has left, and stops what [`begin`] started. By the
/// rank's own task, at finalisation.
pub fn end(rank: &'static Rank) {
    net::close(rank);
    wide::free_ended(&mut rank.enter());
    let change = rank.policies().lock();
    change.open(false);
    stop(rank, rank.means());
}

/// Ends the calling rank, and with it the job, with this exit code (`MPI_Abort`); `text` goes
/// to the report descriptor when it is not empty.
pub fn abort(rank: &Rank, code: i32, text: &str) -> ! {
    if !text.is_empty() {
        say(rank.node().boot().report_fd, format_args!("{text}\n"));
    }
    let word = RankBoot::encode_abort(code);
    rank.boot().abort.store(word, Ordering::Release);
    arch::exit_group(code)
}

/// Waits until every rank of the node has come here or has left ([`abort_members`]), so that nobody's
/// memory goes away while another still reads it. Once per rank, for a job of one node.
pub fn meet_at_end(rank: &Rank) {
    let node = rank.node();
    rank.mark_done();
    wait::until(rank, WaitKind::Collective, || node.all_done());
}

/// Ends the calling rank and `members` of its node with this exit code, and nobody else (`MPI_ERRORS_ABORT`,
/// MPI-4.1 9.3); `text` goes to the report descriptor.
///
/// Another rank is never ended in the middle of what it does, because it may hold the claim of a rank that
/// goes on: it is told, and ends itself when it waits in MPI or calls `MPI_Test` and its like in vain.
/// Another thread of the calling rank that helps a rank which goes on is cut off in the middle, as in `MPI_Abort`. Between nodes, and
/// when nobody would be left, the whole job ends.
pub fn abort_members(rank: &Rank, members: &[Peer], code: i32, text: &str) -> ! {
    let node = rank.node();
    if node.boot().nodes > 1 || members.len() >= node.size() as usize {
        abort(rank, code, text);
    }
    say(node.boot().report_fd, format_args!("{text}\n"));
    let word = RankBoot::encode_departure(code);
    let others = members.iter().filter_map(|&peer| node.local(peer));
    for other in others.filter(|&other| other != rank.id()) {
        let other = node.rank(other);
        // A rank that aborts the job, or was told before, keeps its word. Release: pairs with the
        // acquire of the loader and of `leave_if_told`.
        let told = &other.boot().abort;
        let _ = told.compare_exchange(0, word, Ordering::Release, Ordering::Relaxed);
        other.wake();
    }
    rank.boot().abort.store(word, Ordering::Release);
    depart(rank, code)
}

/// Whether another member of one of the rank's communicators, or the rank itself, has ended it.
#[inline]
pub(crate) fn must_leave(rank: &Rank) -> bool {
    rank.boot().abort.load(Ordering::Relaxed) != 0
}

/// Ends the calling rank if another member of one of its communicators asked for it. The caller holds
/// no claim.
#[inline]
pub(crate) fn leave_if_told(rank: &Rank) {
    let word = rank.boot().abort.load(Ordering::Acquire);
    if word != 0
        && let Some(code) = RankBoot::decode_departure(word)
    {
        depart(rank, code);
    }
}

#[cold]
fn depart(rank: &Rank, code: i32) -> ! {
    // Thieves find the claim taken for ever: nothing of this rank is to be moved on.
    core::mem::forget(rank.enter());
    rank.mark_done();
    arch::exit_group(code)
}
