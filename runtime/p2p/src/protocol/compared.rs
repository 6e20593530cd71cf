//! Messages that carry their types, which are compared with those of their receives (`COHORT_CHECK=members`).
//!
//! A short message is a block of the sender's heap with the digest of its elements beside it, a long one is an offer,
//! of which the receiver sees the sender's own buffer. A receive may be of more elements than come: the first ones
//! count (MPI-4.1, 3.3.1). A message of other types is delivered, and the receive fails with [`Status::TYPE`].
//!
//! Buffered sends, partitioned ones and messages between nodes carry no types.

use crate::outbox;
use crate::protocol::{Block, eager};
use crate::ring::{Header, PayloadKind};
use cohort_base::LocalRank;
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::message::{Envelope, SendMode, Status};
use cohort_core::rank::Rank;
use cohort_datatype::{self as datatype, Basic, Buffer, Type, named_like, predefined_type};

/// A message in a block, and its types.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compared {
    pub(crate) block: Block,
    types: Types,
}

/// Of which elements data is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Types {
    elements: u64,
    hash: u64,
    /// Handle of the type that all of them have, 0 for several.
    handle: u32,
}

impl Types {
    fn of(buffer: Buffer<'_>) -> Self {
        let digest = buffer.datatype.signature().digest().repeat(buffer.count);
        Self {
            elements: digest.elements,
            hash: digest.hash,
            handle: handle_of(buffer.datatype),
        }
    }
}

fn handle_of(datatype: &Type) -> u32 {
    named_like(datatype).map_or(0, Type::handle)
}

/// Whether messages are not sent in the shortest way, as they carry their types or are noted for a timeline, and this
/// one is short enough for a block.
pub(crate) fn is_short(rank: &Rank, bytes: u64, mode: SendMode) -> bool {
    let settings = rank.node().settings();
    (settings.check_members || settings.trace)
        && mode != SendMode::Synchronous
        && bytes <= settings.compared_eager_max as u64
}

/// Whether a message carries its types: those inside collectives are packed at one end now and then.
pub(crate) fn is_compared(envelope: Envelope) -> bool {
    envelope.context.is_multiple_of(2)
}

/// Sends a short message.
///
/// # Safety
/// The buffer's data is readable.
#[cold]
pub(crate) unsafe fn send(
    claim: &mut Claim<'_>,
    buffer: Buffer<'_>,
    to: LocalRank,
    envelope: Envelope,
) -> Result<(), EngineError> {
    let settings = claim.rank().node().settings();
    // SAFETY: the caller's promise.
    unsafe {
        if settings.check_members && is_compared(envelope) {
            send_with_types(claim, buffer, to, envelope)
        } else if settings.trace {
            eager::send_block(claim, buffer, to, envelope)
        } else {
            eager::send(claim, buffer, to, envelope)
        }
    }
}

/// Sends a short message with its types.
///
/// # Safety
/// The buffer's data is readable.
unsafe fn send_with_types(
    claim: &mut Claim<'_>,
    buffer: Buffer<'_>,
    to: LocalRank,
    envelope: Envelope,
) -> Result<(), EngineError> {
    let bytes = buffer.bytes();
    let data = (claim.alloc(bytes as usize)).ok_or(EngineError::OutOfMemory)?;
    let payload = Compared {
        block: Block::sent(claim, data.as_ptr(), bytes, to, envelope),
        types: Types::of(buffer),
    };
    let header = Header::new(envelope, PayloadKind::Compared, size_of::<Compared>());
    // SAFETY: the caller's promise; the block is fresh and has so many bytes, and is still ours if it was not posted.
    unsafe {
        datatype::pack(buffer, 0, data.as_ptr(), bytes);
        let posted = outbox::post(claim, to, header, (&raw const payload).cast());
        if posted.is_err() {
            claim.free_local(data);
        }
        posted
    }
}

impl Compared {
    /// The outcome of its delivery to `buffer`, with what the types say.
    #[cold]
    pub(crate) fn judge(&self, status: Status, buffer: Buffer<'_>) -> Status {
        judge(status, self.types, buffer)
    }
}

/// The outcome of a delivery from a sender's buffer, with what the types say.
#[cold]
pub(crate) fn judge_buffers(
    envelope: Envelope,
    status: Status,
    sent: Buffer<'_>,
    buffer: Buffer<'_>,
) -> Status {
    match is_compared(envelope) {
        true => judge(status, Types::of(sent), buffer),
        false => status,
    }
}

fn judge(status: Status, sent: Types, buffer: Buffer<'_>) -> Status {
    if status.error != Status::SUCCESS || fits(sent, buffer) {
        return status;
    }
    let page = |handle: u32| handle & 0xff;
    Status {
        error: Status::TYPE,
        beyond: page(sent.handle) | page(handle_of(buffer.datatype)) << 8,
        ..status
    }
}

/// Whether elements may come into a buffer: they are its first ones, or one side is packed.
fn fits(sent: Types, buffer: Buffer<'_>) -> bool {
    let signature = buffer.datatype.signature();
    let is_packed = |basic| basic == Some(Basic::Packed);
    let of_sender = predefined_type(sent.handle).and_then(|it| it.signature().uniform());
    if is_packed(signature.uniform()) || is_packed(of_sender) {
        return true;
    }
    let each = signature.elements().max(1);
    let whole = signature.digest().repeat(sent.elements / each);
    let expected = whole.and(signature.digest_of_first(sent.elements % each));
    (expected.elements, expected.hash) == (sent.elements, sent.hash)
}

/// The types of the message and of the receive that a status with [`Status::TYPE`] names in `beyond`; `None` where they
/// are several.
#[must_use]
pub fn types_of(beyond: u32) -> [Option<&'static Type>; 2] {
    let page = datatype::types::MPI_BYTE.handle() & !0xff;
    [beyond & 0xff, beyond >> 8 & 0xff].map(|it| predefined_type(page | it))
}
