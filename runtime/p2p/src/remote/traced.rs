//! Messages between nodes in timelines (`COHORT_TRACE`).
//!
//! A sender numbers its messages, those within its node among them, and the number travels in the packet's header. So
//! both ends know a message by its sender, its receiver and its number.

use crate::P2p;
use crate::noted::{message, next_number};
use cohort_base::Peer;
use cohort_base::trace;
use cohort_core::claim::Claim;
use cohort_core::message::Envelope;
use cohort_net::wire::{Header, PacketKind};

/// Notes that the claimed rank is about to send a message, if there is a timeline: the one of which the next [`header`]
/// is.
#[inline]
pub(super) fn sent(claim: &mut Claim<'_>, to: Peer, envelope: Envelope, bytes: u64) {
    if claim.rank().trace().is_some() {
        let number = next_number(claim);
        note(claim, trace::EventKind::SentFar, to, envelope, bytes, number);
    }
}

/// Notes that a message of this number has met its receive.
#[cold]
pub(super) fn matched(claim: &Claim<'_>, from: Peer, envelope: Envelope, bytes: u64, number: u32) {
    note(claim, trace::EventKind::MatchedFar, from, envelope, bytes, number);
}

#[cold]
fn note(claim: &Claim<'_>, kind: trace::EventKind, peer: Peer, envelope: Envelope, bytes: u64, number: u32) {
    let rank = claim.rank();
    if let Some(ring) = rank.trace() {
        let peer = rank.node().world_rank(peer);
        ring.note(&message(kind, peer, number.into(), bytes, envelope));
    }
}

/// The header of a message of the claimed rank, with its number if it was noted.
#[inline]
pub(super) fn header(claim: &mut Claim<'_>, kind: PacketKind, envelope: Envelope, bytes: u64, id: u64) -> Header {
    let mut header = Header::of_message(kind, envelope, bytes, id);
    // 0 without a timeline.
    header.message = claim.of::<P2p>().noted;
    header
}
