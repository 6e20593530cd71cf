//! Short messages that are followed for a timeline (`COHORT_TRACE`): inline ones behind a [`Mark`].
//!
//! The mark goes with the message, since who receives it need not be its receiver, and knows of no timeline otherwise:
//! messages without marks cost nothing more than they did.

use super::{Mark, Payload};
use crate::outbox;
use crate::ring::{Header, PAYLOAD_MAX, PayloadKind};
use cohort_base::LocalRank;
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::message::{Envelope, Status};
use cohort_datatype::{self as datatype, Buffer};
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// Bytes of the longest message that is marked; longer ones are in blocks, which have marks too.
pub(crate) const DATA_MAX: usize = PAYLOAD_MAX - size_of::<Mark>();

/// A payload: the mark and the packed data.
#[repr(C)]
struct Marked {
    mark: Mark,
    data: [MaybeUninit<u8>; DATA_MAX],
}

/// Sends a message of at most [`DATA_MAX`] bytes.
#[cold]
pub(crate) fn send(
    claim: &mut Claim<'_>,
    buffer: Buffer<'_>,
    to: LocalRank,
    envelope: Envelope,
) -> Result<(), EngineError> {
    let bytes = buffer.bytes() as usize;
    debug_assert!(bytes <= DATA_MAX);
    let mut payload =
        Marked { mark: Mark::sent(claim, bytes as u64, to, envelope), data: [MaybeUninit::uninit(); DATA_MAX] };
    let header = Header::new(envelope, PayloadKind::Marked, size_of::<Mark>() + bytes);
    // SAFETY: the packed bytes fit, and lie right behind the mark.
    unsafe {
        datatype::pack(buffer, 0, payload.data.as_mut_ptr().cast(), bytes as u64);
        outbox::post(claim, to, header, (&raw const payload).cast())
    }
}

impl Marked {
    /// That of a message.
    ///
    /// # Safety
    /// The message is marked.
    unsafe fn of(payload: &Payload<'_>) -> MaybeUninit<Self> {
        let mut marked = MaybeUninit::<Self>::uninit();
        // SAFETY: no payload is longer than the longest, and no shorter than the mark, by the caller's promise.
        unsafe { payload.read(marked.as_mut_ptr().cast()) };
        marked
    }
}

/// Receives a marked message.
///
/// # Safety
/// The message is marked, and is not received again.
#[cold]
pub(crate) unsafe fn receive(payload: &Payload<'_>, buffer: Buffer<'_>) -> Status {
    let (envelope, bytes) = (payload.header().envelope(), payload.bytes());
    let capacity = buffer.bytes();
    // SAFETY: the caller's promise; the mark and so many bytes of data have been read.
    unsafe {
        let marked = Marked::of(payload);
        let data = (&raw const (*marked.as_ptr()).data).cast::<u8>();
        datatype::unpack(buffer, 0, data, bytes.min(capacity));
        (*marked.as_ptr()).mark.came(bytes, envelope);
    }
    Status::delivered(envelope, bytes, capacity)
}

/// Copies the data of a marked message to a block of the claimed rank's heap; `None` when memory is short.
///
/// # Safety
/// The message is marked.
pub(crate) unsafe fn keep(claim: &mut Claim<'_>, payload: &Payload<'_>) -> Option<NonNull<u8>> {
    let bytes = payload.bytes();
    let block = claim.alloc(bytes.max(1) as usize)?;
    // SAFETY: the caller's promise; the block has room for the data.
    unsafe {
        let marked = Marked::of(payload);
        let data = (&raw const (*marked.as_ptr()).data).cast::<u8>();
        block.as_ptr().copy_from_nonoverlapping(data, bytes as usize);
        (*marked.as_ptr()).mark.came(bytes, payload.header().envelope());
    }
    Some(block)
}
