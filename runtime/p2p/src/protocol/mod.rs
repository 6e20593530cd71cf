//! How bytes travel between two ranks: one file per way.
//!
//! | way | for | copies | module |
//! |---|---|---|---|
//! | inline | up to [`crate::ring::PAYLOAD_MAX`] bytes | into the ring, out of it | [`eager`] |
//! | block | up to `COHORT_EAGER_MAX` | into a block of the sender's heap, out of it | [`eager`] |
//! | block with its types | the same, with `COHORT_CHECK=members` | the same | `compared` |
//! | offer | longer, and synchronous sends | one, from user buffer to user buffer | [`rendezvous`] |
//! | job | offers of more than [`rendezvous::AT_ONCE_MAX`] bytes | the same one, by several ranks | `operation/job.rs` |

pub(crate) mod compared;
pub mod eager;
pub(crate) mod handover;
pub(crate) mod jobs;
pub mod rendezvous;
pub(crate) mod types;

use crate::matching::Stored;
use crate::operation::{Offer, Operation};
use crate::remote;
pub(crate) use crate::remote::Arrival;
use crate::ring::{Front, Header, PayloadKind};
use cohort_base::LocalRank;
use cohort_base::trace::{Event, Kind, Ring};
use cohort_core::claim::Claim;
use cohort_core::message::Envelope;
use core::mem::MaybeUninit;
use types::Compared;
pub use types::types_of;

/// Payload of a message whose packed data is in a block of the sender's heap. The
/// receiver frees the block.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub(crate) data: *mut u8,
    pub(crate) bytes: u64,
    /// Where its receiver notes that it has come, if anywhere.
    trace: Option<&'static Ring>,
    from: LocalRank,
}

impl Block {
    /// A block that nobody follows.
    pub(crate) fn new(data: *mut u8, bytes: u64) -> Self {
        Self {
            data,
            bytes,
            trace: None,
            from: 0,
        }
    }

    /// A block that the claimed rank is about to send, noted if there is a timeline.
    pub(crate) fn sent(
        claim: &Claim<'_>,
        data: *mut u8,
        bytes: u64,
        to: LocalRank,
        envelope: Envelope,
    ) -> Self {
        let rank = claim.rank();
        if let Some(trace) = rank.trace() {
            trace.note(&message(Kind::Sent, to, data.addr(), bytes, envelope));
        }
        Self {
            data,
            bytes,
            trace: rank.node().rank(to).trace(),
            from: rank.id(),
        }
    }

    /// Its data has been copied to its receiver, and is still there.
    #[inline]
    pub(crate) fn came(&self, envelope: Envelope) {
        if let Some(trace) = self.trace {
            let (flow, bytes) = (self.data.addr(), self.bytes);
            trace.note(&message(Kind::Matched, self.from, flow, bytes, envelope));
        }
    }
}

/// What is noted of a message. `flow` is an address that is the message's until it has come.
#[cold]
pub(crate) fn message(
    kind: Kind,
    peer: LocalRank,
    flow: usize,
    bytes: u64,
    envelope: Envelope,
) -> Event {
    Event {
        flow: flow as u64,
        bytes,
        tag: envelope.tag,
        ..Event::now(kind, peer)
    }
}

/// Where the payload of a message is.
#[derive(Clone, Copy)]
pub(crate) enum Payload<'a> {
    Ring(&'a Front<'a>),
    Stored(*mut Stored),
}

impl Payload<'_> {
    pub(crate) fn header(&self) -> Header {
        match self {
            Self::Ring(front) => front.header,
            // SAFETY: made from a valid stored message.
            Self::Stored(stored) => unsafe { (**stored).header },
        }
    }

    /// Copies the payload to `out`.
    ///
    /// # Safety
    /// `out` is writable for `header().payload` bytes.
    #[inline]
    pub(crate) unsafe fn read(&self, out: *mut u8) {
        // SAFETY: the caller's promise; the payload has as many bytes.
        unsafe {
            match self {
                Self::Ring(front) => front.read(out),
                Self::Stored(stored) => {
                    let length = usize::from((**stored).header.payload);
                    Stored::payload(*stored).copy_to_nonoverlapping(out, length);
                }
            }
        }
    }

    /// The payload as the value that the sender wrote.
    ///
    /// # Safety
    /// The header's kind says that the payload is a `T`.
    pub(crate) unsafe fn value<T: Copy>(&self) -> T {
        debug_assert_eq!(usize::from(self.header().payload), size_of::<T>());
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: the payload is a `T`.
        unsafe {
            self.read(value.as_mut_ptr().cast());
            value.assume_init()
        }
    }

    /// The offer, if the message is one.
    pub(crate) fn offer(&self) -> Option<Offer> {
        // SAFETY: the kind names the payload's type.
        (self.header().kind == PayloadKind::Offer).then(|| unsafe { self.value() })
    }

    /// Bytes of data of the message.
    pub(crate) fn bytes(&self) -> u64 {
        let header = self.header();
        // SAFETY: the kind names the payload's type.
        unsafe {
            match header.kind {
                PayloadKind::Inline => u64::from(header.payload),
                PayloadKind::Block => self.value::<Block>().bytes,
                PayloadKind::Compared => self.value::<Compared>().block.bytes,
                PayloadKind::Offer => self.value::<Offer>().bytes,
                PayloadKind::Arrival => self.value::<Arrival>().bytes,
            }
        }
    }
}

/// Delivers a matched message to a receive that is in no queue. An offer has been taken.
/// Returns the bytes that were copied already.
///
/// # Safety
/// `request` is a pending receive of the claimed rank.
pub(crate) unsafe fn deliver(
    claim: &mut Claim<'_>,
    payload: &Payload<'_>,
    request: *mut Operation,
) -> u64 {
    let envelope = payload.header().envelope();
    // SAFETY: the caller's promise; a receive has a buffer, which is the engine's now.
    unsafe {
        match payload.header().kind {
            PayloadKind::Inline | PayloadKind::Block | PayloadKind::Compared => {}
            PayloadKind::Offer => {
                return rendezvous::receive(claim, payload.value(), envelope, request);
            }
            PayloadKind::Arrival => {
                return remote::deliver(claim, payload.value(), envelope, request);
            }
        }
        if !claim.is_by_owner() {
            return handover::deliver_for_owner(claim, payload, request);
        }
        let status = eager::receive(payload, (*request).buffer());
        Operation::complete(request, status);
        status.bytes as u64
    }
}
