//! Messages in timelines: what both ends note of them.

use crate::P2p;
use cohort_base::trace::{Event, EventKind};
use cohort_core::claim::Claim;
use cohort_core::message::Envelope;

/// The number of a message of the claimed rank that is noted for a timeline.
pub(crate) fn next_number(claim: &mut Claim<'_>) -> u32 {
    let state = claim.of::<P2p>();
    state.noted = state.noted.wrapping_add(1);
    state.noted
}

/// What is noted of a message. `flow` tells it from others of its sender that are on their way.
#[cold]
pub(crate) fn message(kind: EventKind, peer: u32, flow: u64, bytes: u64, envelope: Envelope) -> Event {
    Event { flow, bytes, tag: envelope.tag, ..Event::now(kind, peer) }
}
