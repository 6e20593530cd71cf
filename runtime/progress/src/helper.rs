//! Helpers (`COHORT_PROGRESS=helper`): who matches messages with the requests of computing ranks, and wakes
//! their progress threads (SmartInterrupts, section 4.1).
//!
//! # Who does what
//! * Each rank has a progress thread, which sleeps (`poller.rs`).
//! * A program leaves a long receive behind whose message has not come: the rank writes a *request for an interrupt*
//!   (IRD) on its [`HelperMailbox`], and takes it off when the receive is matched.
//! * A sender that offers a long message to a rank with such requests leaves a *notice* (ICD) on its mailbox.
//! * A helper compares both, and wakes the thread for a pair. It moves no message itself.
//! * Collectives among nodes leave no notices: for a rank with some the helper takes turns itself, like a thief.
//!
//! # When a pair is a match
//! The receive still waits, the envelope fits, and the message is still in its ring. The last is known by numbers: the
//! n-th RTS of a sender to this rank is gone when the rank has accepted n of that sender. So a notice that
//! the rank has dealt with wakes nobody. While the rank is claimed somebody progresses it:
//! the helper skips it (optimisation 1) and wakes nobody (optimisation 2), but keeps the notice.
//!
//! # Why no match is missed
//! The rank publishes its request, fences, and looks at the rings once more. The sender publishes its
//! message, fences, and looks whether there are requests. One of them sees the other. A notice that finds the mailbox
//! full is dropped: then the message waits for the rank's next call, as without a helper.

use crate::mailbox::{HelperMailbox, Notice, POSTPONED, Postponed};
use crate::parts::OfRank as _;
use crate::poller;
use crate::round::{self, Round};
use cohort_base::sync::atomic::{Ordering, fence};
use cohort_core::claim::Claim;
use cohort_core::message::Envelope;
use cohort_core::rank::Rank;
use cohort_core::steal::Thief;
use cohort_p2p::P2p;
use cohort_p2p::matching::Want;
use cohort_steal::TaskKind;
use cohort_steal::policy::{DedicatedWorkers, Outcome, Victims};

/// Tells the helper of `receiver` that `sender` has published an RTS, its `number`-th to this rank.
pub(crate) fn announce(receiver: &Rank, sender: &Rank, envelope: Envelope, number: u32) {
    let Some(mailbox) = receiver.mailbox() else {
        return;
    };
    // Pairs with the fence in `watch`: one of us sees the other.
    fence(Ordering::SeqCst);
    if mailbox.count.load(Ordering::Relaxed) == 0 {
        return;
    }
    let notice = Notice { envelope, sender: sender.id(), number, answered: false };
    if mailbox.notices.push(notice)
        && let Some(helper) = receiver.worker_of(DedicatedWorkers::Helpers)
    {
        helper.wake();
    }
}

/// A helper's look at one rank.
pub(crate) fn serve(rank: &Rank, host: &Rank) -> Round {
    let Some(mailbox) = rank.mailbox() else {
        return Round::Nothing;
    };
    // Also what is on its way between nodes, which leaves no notices.
    let is_left_behind = rank.watched().load(Ordering::Relaxed) > 0 || rank.pending_events().has_users();
    if !is_left_behind && mailbox.notices.is_empty() {
        return Round::Nothing;
    }
    // SAFETY: we are the rank's only helper.
    let postponed = unsafe { &mut *mailbox.postponed.get() };
    while postponed.count < POSTPONED {
        // SAFETY: as above.
        let Some(notice) = (unsafe { mailbox.notices.front() }) else {
            break;
        };
        postponed.notices[postponed.count] = Some(notice);
        postponed.count += 1;
        // SAFETY: as above.
        unsafe { mailbox.notices.pop() };
    }
    if rank.is_claimed() || rank.node().rests() {
        return match postponed.count > 0 || rank.node().has_network() {
            true => Round::Unsure,
            false => Round::Nothing,
        };
    }
    // What the holders of the claim did until now is visible from here on.
    fence(Ordering::Acquire);
    let network = match rank.pending_events().has_users() {
        true => round::progress(rank, host),
        false => serve_network(rank, host),
    };
    if compare(rank, mailbox, postponed) && !rank.is_claimed() && poller::wake_sleeper(rank) {
        postponed.mark_answered(mailbox);
    }
    match network {
        Round::Nothing if postponed.count > 0 => Round::Unsure,
        found => found,
    }
}

/// Compares the kept notices with the mailbox: drops those that are dealt with; `true` when one of the others
/// is asked for and was not answered.
fn compare(rank: &Rank, mailbox: &HelperMailbox, postponed: &mut Postponed) -> bool {
    let mut left = 0;
    let mut matched = false;
    for place in 0..postponed.count {
        let Some(notice) = postponed.notices[place].take() else {
            continue;
        };
        let accepted = rank.shared::<P2p>().accepted_from(notice.sender);
        // Numbers wrap; half of their range is far more than can be under way.
        if accepted.wrapping_sub(notice.number) as i32 >= 0 {
            continue;
        }
        matched |= !notice.answered && mailbox.is_requested(&notice.envelope);
        postponed.notices[left] = Some(notice);
        left += 1;
    }
    postponed.count = left;
    matched
}

/// Messages of other nodes announce themselves only in the network, so the helper takes them from there itself.
fn serve_network(rank: &Rank, host: &Rank) -> Round {
    let victims = Thief::of_worker(host);
    if !victims.is_available(rank.id(), TaskKind::Net) {
        return Round::Nothing;
    }
    match victims.try_progress(rank.id(), TaskKind::Net) {
        Outcome::Progressed { .. } => Round::Moved,
        Outcome::Busy => Round::Unsure,
        Outcome::Idle => Round::Nothing,
    }
}

/// The claimed rank leaves a receive behind: asks for an interrupt. Returns the request's place.
pub(crate) fn watch(claim: &mut Claim<'_>, want: &Want) -> Option<u8> {
    let place = claim.rank().mailbox()?.level_wanted(want)?;
    // Pairs with the fence in `announce`. The caller looks at the rings once more.
    fence(Ordering::SeqCst);
    Some(place)
}

#[cfg(test)]
mod tests;
