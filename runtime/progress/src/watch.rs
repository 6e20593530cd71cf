//! Receives, and collectives, that a program leaves behind while it computes (scenario 3 of PEF).
//!
//! Policies that act for a computing rank want to know them: blocking receives, and those that find their
//! message, need no help. A receive counts when it may take a message that is not sent eagerly.

use crate::helper;
use crate::lifecycle;
use crate::observer::Fallback;
use crate::parts::OfRank as _;
use cohort_base::settings::Progress;
use cohort_base::sync::atomic::{Ordering, fence};
use cohort_core::claim::Claim;
use cohort_core::rank::Rank;
use cohort_core::request::RequestRef;
use cohort_core::subsystem::Mark;
use cohort_p2p::operation::Operation;
use cohort_p2p::poll;
use cohort_steal::policy::{Capabilities, DedicatedWorkers, RankThread, policy};

/// It is counted.
const COUNTED: Mark = Mark(1);

/// It is counted, and has a place on the rank's mailbox: this one more.
const IN_MAILBOX: u8 = 2;

/// The program goes on and leaves this receive behind: if it is long and its message has not come,
/// the policy of its communicator watches for it. Other requests are passed over. Called with the
/// claim under which it was started.
#[inline]
pub fn leave_behind(claim: &mut Claim<'_>, request: &RequestRef, progress: Progress) {
    let capabilities = policy(progress).capabilities();
    if capabilities.watches_receives()
        && let Some(receive) = Operation::of(request)
    {
        watch(
            claim.rank().forever(),
            claim,
            receive.as_ptr(),
            capabilities,
        );
    }
}

#[cold]
fn watch(
    rank: &'static Rank,
    claim: &mut Claim<'_>,
    receive: *mut Operation,
    capabilities: Capabilities,
) {
    let fallback = match capabilities.adapts() {
        true => rank.observer().fallback(rank),
        false => Fallback::None,
    };
    let dedicated_workers = match fallback {
        Fallback::Helper => DedicatedWorkers::Helpers,
        Fallback::None | Fallback::Signal => capabilities.dedicated_workers(),
    };
    // SAFETY: an operation of the claimed rank that is not released.
    unsafe {
        let is_eager = (*receive).buffer().bytes() <= rank.node().settings().eager_max as u64;
        if !(*receive).is_posted || (*receive).mark != Mark::NONE || is_eager {
            return;
        }
        (*receive).mark = COUNTED;
        // Relaxed: written under the claim; others take it as a hint.
        rank.watched().fetch_add(1, Ordering::Relaxed);
        if dedicated_workers == DedicatedWorkers::Helpers
            && let Some(place) = helper::watch(claim, &(*receive).want)
        {
            (*receive).mark = Mark(IN_MAILBOX + place);
            poll::pull_for(claim, None, receive);
            if !(*receive).is_posted {
                return;
            }
        }
    }
    if let Some(worker) = rank.worker_of(dedicated_workers) {
        worker.ensure(rank);
    }
    if capabilities.may_interrupt() && fallback != Fallback::Helper {
        rank.interrupter().begin(rank);
        // Pairs with the fence in `Rank::find_help`: a message that came meanwhile sent no signal.
        fence(Ordering::SeqCst);
        // SAFETY: the request is not released.
        unsafe { poll::pull_for(claim, None, receive) };
    }
    if capabilities.thread() == RankThread::PollsForRendezvous {
        rank.sleeper().wake(rank.node().barriers());
    }
}

/// The program leaves a collective behind that others go on with. Whoever acts for the rank is
/// told, as for a long receive. By a thread of the program, with its claim.
pub(crate) fn leave_collective_behind(claim: &mut Claim<'_>) -> Mark {
    let rank = claim.rank().forever();
    lifecycle::ensure_dedicated_workers(rank);
    let capabilities = rank.capabilities();
    let polls = capabilities.thread() == RankThread::PollsForRendezvous;
    if !(capabilities.may_interrupt() || polls) {
        return Mark::NONE;
    }
    rank.watched().fetch_add(1, Ordering::Relaxed);
    if capabilities.may_interrupt() {
        rank.interrupter().begin(rank);
    }
    if polls {
        rank.sleeper().wake(rank.node().barriers());
    }
    COUNTED
}

/// A collective that was left behind is over.
pub(crate) fn over(claim: &Claim<'_>, mark: Mark) {
    if mark != Mark::NONE {
        claim.rank().watched().fetch_sub(1, Ordering::Relaxed);
    }
}

/// A posted receive with a mark has left its queue.
pub(crate) fn met(claim: &Claim<'_>, mark: Mark) {
    let rank = claim.rank();
    rank.watched().fetch_sub(1, Ordering::Relaxed);
    if rank.capabilities().adapts() {
        rank.observer().matched(rank);
    }
    if let (Some(place), Some(mailbox)) = (mark.0.checked_sub(IN_MAILBOX), rank.mailbox()) {
        mailbox.withdraw(place);
    }
}
