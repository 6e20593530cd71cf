//! Sends of messages that carry their types, which are compared with those of their receives (`COHORT_CHECK=members`).
//!
//! A short message is a block of the sender's heap with the digest of its elements beside it, a long one is an RTS,
//! of which the receiver sees the sender's own buffer. What the comparison says is in [`crate::protocol::types`].
//!
//! Buffered sends, partitioned ones and messages between nodes carry no types.

use crate::outbox;
use crate::packed::PackedBlock;
use crate::protocol::types::Compared;
pub(crate) use crate::protocol::types::is_compared;
use crate::protocol::{Block, Mark};
use crate::ring::{Header, PayloadKind};
use cohort_base::LocalRank;
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::message::Envelope;
use cohort_datatype::Buffer;

/// Sends a short message with its types.
#[cold]
pub(crate) fn send(
    claim: &mut Claim<'_>,
    buffer: Buffer<'_>,
    to: LocalRank,
    envelope: Envelope,
) -> Result<(), EngineError> {
    let packed = PackedBlock::of(claim, buffer).ok_or(EngineError::OutOfMemory)?;
    let (data, bytes) = (packed.data(), packed.bytes());
    let block = Block { data, bytes, mark: Mark::sent(claim, bytes, to, envelope) };
    let payload = Compared::new(block, buffer);
    let header = Header::new(envelope, PayloadKind::Compared, size_of::<Compared>());
    // SAFETY: the payload is a plain value, and the block its receiver's if it is posted.
    let posted = unsafe { outbox::post(claim, to, header, (&raw const payload).cast()) };
    if posted.is_ok() {
        packed.into_raw();
    }
    posted
}
