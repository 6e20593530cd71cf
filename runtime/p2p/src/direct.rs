//! Receives that wait for one message, and poll for it before they make or post a request.
//!
//! Whoever polls here holds its rank's claim, so nobody else takes messages out of its rings meanwhile. That allows it
//! to copy what has [come of a message](crate::ring::pieces) that is still being written.

use crate::P2p;
use crate::matching::Want;
use crate::operation::Operation;
use crate::outbox;
use crate::poll;
use crate::protocol::{Payload, eager, pieces};
use crate::state::{awaits_help, is_quiet};
use cohort_base::sync::pause;
use cohort_base::{LocalRank, Peer};
use cohort_core::claim::Claim;
use cohort_core::message::{Source, Status};
use cohort_core::request::RequestRef;
use cohort_datatype::Buffer;

/// Polls of a blocking receive for its message alone, when every rank has a CPU.
pub(crate) const DIRECT_POLLS: u32 = 400;

/// The fast path of a blocking receive: when nothing else could match, it polls the sender's ring
/// for a while and delivers without a request. `None`: the slow path is needed.
#[inline(always)]
pub(crate) fn receive_directly(
    claim: &mut Claim<'_>,
    sender: LocalRank,
    want: &Want,
    buffer: Buffer<'_>,
) -> Option<Status> {
    let rank = claim.rank();
    let state = claim.of::<P2p>();
    if !state.posted.is_empty() || !state.unexpected.is_empty() || !is_quiet(claim) {
        return None;
    }
    let outlet = rank.shared::<P2p>().inbox.outlet(sender)?;
    let polls = if rank.polls_directly() { DIRECT_POLLS } else { 1 };
    let mut early = 0;
    for _ in 0..polls {
        let Some(front) = outlet.front() else {
            early = pieces::receive_early(&outlet, want, &buffer, early);
            pause();
            continue;
        };
        let header = front.header;
        if !header.kind.is_eager() || !want.takes(&header.envelope()) {
            return None;
        }
        let payload = Payload::Ring(&front);
        // SAFETY: the message is no RTS and is popped below, and it is the one that came early.
        let status = unsafe {
            match early {
                0 => eager::receive(&payload, buffer),
                _ => eager::receive_other(payload, buffer, early),
            }
        };
        if front.pop() {
            outbox::made_room(rank, sender);
        }
        return Some(status);
    }
    None
}

/// Looks for the message of a receive that was started, in a call that waits for it alone: polls its sender's ring for
/// a while, as a blocking receive does. Says whether the receive is complete. For the rank's own task.
pub fn await_briefly(request: &RequestRef, from: Source) -> bool {
    if request.is_complete() {
        return true;
    }
    let (Some(receive), Some(peer)) = (Operation::of(request), sender_of(from)) else {
        return false;
    };
    let rank = receive.request.owner();
    if !rank.polls_directly() || rank.node().local(peer).is_none() {
        return false;
    }
    let mut claim = rank.enter();
    if claim.of::<P2p>().posted.count() != 1 || awaits_help(&mut claim) {
        return false;
    }
    for _ in 0..DIRECT_POLLS {
        poll::pull_for(&mut claim, Some(peer), receive);
        if request.is_complete() {
            return true;
        }
        pause();
    }
    false
}

/// The only sender whose messages fit, if there is only one.
pub fn sender_of(from: Source) -> Option<Peer> {
    match from {
        Source::Any => None,
        Source::Rank { peer, .. } => Some(peer),
    }
}
