//! Receives, and collectives, that a program leaves behind while it computes (scenario 3 of PEF).
//!
//! Policies that act for a computing rank want to know them: blocking receives, and those that find their
//! message, need no help. A receive counts when it may take a message that is not sent eagerly. A long message that is
//! on its way between nodes counts until it has arrived, at both of its ends: only who looks moves its data.

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
        watch(claim.rank().forever(), claim, receive, capabilities);
    }
}

/// The same for a send. Within a node the receiver's side copies; what goes to another node may have to be written
/// while the program computes.
#[inline]
pub fn leave_send_behind(claim: &mut Claim<'_>, request: &RequestRef, progress: Progress) {
    if claim.rank().node().has_network() {
        leave_behind(claim, request, progress);
    }
}

#[cold]
fn watch(rank: &'static Rank, claim: &mut Claim<'_>, receive: &Operation, capabilities: Capabilities) {
    let fallback = match capabilities.adapts() {
        true => rank.observer().fallback(rank),
        false => Fallback::None,
    };
    let dedicated_workers = match fallback {
        Fallback::Helper => DedicatedWorkers::Helpers,
        Fallback::None | Fallback::Signal => capabilities.dedicated_workers(),
    };
    let is_eager = receive.buffer().bytes() <= rank.node().settings().eager_max as u64;
    if is_eager || receive.mark.get() != Mark::NONE {
        return;
    }
    if !receive.is_posted.get() {
        // A send, or a receive that has met its message: data may be on its way between nodes.
        if rank.node().has_network() && rank.watched().load(Ordering::Relaxed) > 0 {
            act(rank, dedicated_workers, fallback, capabilities);
        }
        return;
    }
    receive.mark.set(COUNTED);
    // Relaxed: written under the claim; others take it as a hint.
    rank.watched().fetch_add(1, Ordering::Relaxed);
    if dedicated_workers == DedicatedWorkers::Helpers
        && let Some(place) = helper::watch(claim, &receive.want)
    {
        receive.mark.set(Mark(IN_MAILBOX + place));
        poll::pull_for(claim, None, receive);
        if !receive.is_posted.get() {
            return;
        }
    }
    if act(rank, dedicated_workers, fallback, capabilities) {
        // Pairs with the fence in `Rank::find_help`: a message that came meanwhile sent no signal.
        fence(Ordering::SeqCst);
        poll::pull_for(claim, None, receive);
    }
}

/// Has those act for the rank whom the policy has. Says whether a signal is among them.
fn act(
    rank: &'static Rank,
    dedicated_workers: DedicatedWorkers,
    fallback: Fallback,
    capabilities: Capabilities,
) -> bool {
    if let Some(worker) = rank.worker_of(dedicated_workers) {
        worker.ensure(rank);
        if rank.node().has_network() {
            // It may rest after watches that found nothing.
            worker.wake();
        }
    }
    let interrupts = capabilities.may_interrupt() && fallback != Fallback::Helper;
    if interrupts {
        rank.interrupter().begin(rank);
    }
    if capabilities.thread() == RankThread::PollsForRendezvous {
        rank.sleeper().wake(rank.node().barriers());
    }
    interrupts
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

/// A long message of the claimed rank's is on its way to or from another node. Whoever acts for the rank does so
/// until it has arrived, since nobody else may move its data.
pub(crate) fn under_way(claim: &Claim<'_>) -> Mark {
    let rank = claim.rank();
    if !rank.capabilities().watches_receives() {
        return Mark::NONE;
    }
    rank.watched().fetch_add(1, Ordering::Relaxed);
    COUNTED
}

/// A collective that was left behind, or a message that was under way, is over.
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
