//! Receives that a program leaves behind while it computes (scenario 3 of PEF).
//!
//! Policies that act for a computing rank want to know them: blocking receives, and those that find their
//! message, need no help. A receive counts when it may take a message that is not sent eagerly.

use crate::claim::Claim;
use crate::helper;
use crate::lifecycle;
use crate::observer::Fallback;
use crate::progress;
use crate::rank::Rank;
use crate::request::{Request, RequestRef};
use cohort_base::settings::Progress;
use cohort_base::sync::atomic::{Ordering, fence};
use cohort_steal::policy::{Crew, ProgressPolicy, RankThread, policy};

/// Whether, and how, a receive is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// Not.
    No,
    /// It is counted.
    Counted,
    /// It is counted, and has this place on the rank's board.
    OnBoard(u8),
}

/// The program goes on and leaves this receive behind: if it is long and its message has not
/// come, the policy of its communicator watches for it. Other requests are passed over. Called with the claim under which it
/// was started.
#[inline]
pub fn leave_behind(claim: &mut Claim<'_>, request: RequestRef, progress: Progress) {
    let policy = policy(progress);
    if policy.watches_receives() {
        watch(claim.rank().forever(), claim, request.as_ptr(), policy);
    }
}

#[cold]
fn watch(
    rank: &'static Rank,
    claim: &mut Claim<'_>,
    request: *mut Request,
    policy: &'static dyn ProgressPolicy,
) {
    let fallback = match policy.adapts() {
        true => rank.observer().fallback(rank),
        false => Fallback::None,
    };
    let crew = match fallback {
        Fallback::Helper => Crew::Helpers,
        Fallback::None | Fallback::Signal => policy.crew(),
    };
    // SAFETY: a request of the claimed rank that is not released.
    unsafe {
        let longest = (*request).layout().map_or(0, |layout| layout.bytes());
        let is_eager = longest <= rank.node().settings().eager_max as u64;
        if !(*request).is_posted || (*request).watch != Watch::No || is_eager {
            return;
        }
        (*request).watch = Watch::Counted;
        // Relaxed: written under the claim; others take it as a hint.
        rank.watched().fetch_add(1, Ordering::Relaxed);
        if crew == Crew::Helpers
            && let Some(place) = helper::watch(claim, &(*request).want)
        {
            (*request).watch = Watch::OnBoard(place);
            progress::pull_for(claim, None, request);
            if !(*request).is_posted {
                return;
            }
        }
    }
    if let Some(worker) = rank.worker_of(crew) {
        worker.ensure(rank);
    }
    if policy.interrupts_receiver() && fallback != Fallback::Helper {
        rank.parasite().begin(rank);
        // Pairs with the fence in `Rank::find_help`: a message that came meanwhile sent no signal.
        fence(Ordering::SeqCst);
        // SAFETY: the request is not released.
        unsafe { progress::pull_for(claim, None, request) };
    }
    if policy.rank_thread() == RankThread::PollsForRendezvous {
        rank.sleeper().wake(rank.node().barriers());
    }
}

/// The program leaves a collective behind that others go on with. Whoever acts for the rank is told, as for a long receive. By a
/// thread of the program, with its claim.
pub(crate) fn leave_script_behind(claim: &mut Claim<'_>) -> Watch {
    let rank = claim.rank().forever();
    lifecycle::ensure_crew(rank);
    let means = rank.means();
    let polls = means.thread() == RankThread::PollsForRendezvous;
    if !(means.may_interrupt() || polls) {
        return Watch::No;
    }
    rank.watched().fetch_add(1, Ordering::Relaxed);
    if means.may_interrupt() {
        rank.parasite().begin(rank);
    }
    if polls {
        rank.sleeper().wake(rank.node().barriers());
    }
    Watch::Counted
}

/// A collective that was left behind is over.
pub(crate) fn end_script(claim: &Claim<'_>, watch: Watch) {
    if watch != Watch::No {
        claim.rank().watched().fetch_sub(1, Ordering::Relaxed);
    }
}

/// A posted receive has left its queue.
///
/// # Safety
/// `request` is a request of the claimed rank that is not released.
#[inline]
pub(crate) unsafe fn end(claim: &mut Claim<'_>, request: *mut Request) {
    // SAFETY: the caller's promise.
    let watch = unsafe { core::mem::replace(&mut (*request).watch, Watch::No) };
    if watch == Watch::No {
        return;
    }
    let rank = claim.rank();
    rank.watched().fetch_sub(1, Ordering::Relaxed);
    if rank.means().adapts() {
        rank.observer().met(rank);
    }
    if let (Watch::OnBoard(place), Some(board)) = (watch, rank.board()) {
        board.withdraw(place);
    }
}
