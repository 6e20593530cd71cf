//! Sends of messages that carry their types, which are compared with those of their receives (`COHORT_CHECK=members`).
//!
//! A short message is a block of the sender's heap with the digest of its elements beside it, a long one is an offer,
//! of which the receiver sees the sender's own buffer. What the comparison says is in [`crate::protocol::types`].
//!
//! Buffered sends, partitioned ones and messages between nodes carry no types.

use crate::outbox;
use crate::protocol::types::{Compared, is_compared};
use crate::protocol::{Block, Mark, eager, marked};
use crate::ring::{Header, PayloadKind};
use cohort_base::LocalRank;
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::message::{Envelope, SendMode};
use cohort_core::rank::Rank;
use cohort_datatype::{self as datatype, Buffer};

/// Whether messages are not sent in the shortest way, as they carry their types or their ends are noted, and this one
/// is short enough for a block.
pub(crate) fn is_short(rank: &Rank, bytes: u64, mode: SendMode) -> bool {
    let node = rank.node();
    let settings = node.settings();
    (settings.check_members || node.follows_messages())
        && mode != SendMode::Synchronous
        && bytes <= settings.compared_eager_max.max(settings.eager_max) as u64
}

/// Sends a short message.
#[cold]
pub(crate) fn send(
    claim: &mut Claim<'_>,
    buffer: Buffer<'_>,
    to: LocalRank,
    envelope: Envelope,
) -> Result<(), EngineError> {
    let node = claim.rank().node();
    if node.settings().check_members && is_compared(envelope) && buffer.bytes() > 0 {
        send_with_types(claim, buffer, to, envelope)
    } else if !node.follows_messages() {
        eager::send(claim, buffer, to, envelope)
    } else if buffer.bytes() <= marked::DATA_MAX as u64 {
        marked::send(claim, buffer, to, envelope)
    } else {
        eager::send_block(claim, buffer, to, envelope)
    }
}

/// Sends a short message with its types.
fn send_with_types(
    claim: &mut Claim<'_>,
    buffer: Buffer<'_>,
    to: LocalRank,
    envelope: Envelope,
) -> Result<(), EngineError> {
    let bytes = buffer.bytes();
    let data = (claim.alloc(bytes as usize)).ok_or(EngineError::OutOfMemory)?;
    let block = Block { data: data.as_ptr(), bytes, mark: Mark::sent(claim, bytes, to, envelope) };
    let payload = Compared::new(block, buffer);
    let header = Header::new(envelope, PayloadKind::Compared, size_of::<Compared>());
    // SAFETY: the block is fresh and has so many bytes, and is still ours if it was not posted.
    unsafe {
        datatype::pack(buffer, 0, data.as_ptr(), bytes);
        let posted = outbox::post(claim, to, header, (&raw const payload).cast());
        if posted.is_err() {
            claim.free_local(data);
        }
        posted
    }
}
