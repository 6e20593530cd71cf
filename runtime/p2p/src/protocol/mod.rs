//! How bytes travel between two ranks: one file per way. [`choice`] says which message takes which.

pub mod choice;
pub(crate) mod compared;
pub mod eager;
pub(crate) mod handover;
pub(crate) mod jobs;
pub(crate) mod lent;
pub(crate) mod marked;
pub(crate) mod pieces;
pub(crate) mod pipelined;
pub mod rendezvous;
pub(crate) mod types;

use crate::matching::Stored;
use crate::noted::{message, next_number};
use crate::operation::{Operation, Rts};
use crate::remote;
pub(crate) use crate::remote::Arrival;
use crate::ring::{Front, Header, PayloadKind, copy_short};
use cohort_base::LocalRank;
use cohort_base::trace::{EventKind, Ring};
use cohort_core::claim::Claim;
use cohort_core::message::Envelope;
use cohort_core::record::RecordRef;
use core::mem::MaybeUninit;
use types::Compared;
pub use types::types_of;

/// By whom a message is followed for a timeline, if by anybody.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    /// Where its receiver notes that it has come.
    trace: Option<&'static Ring>,
    from: LocalRank,
    /// What tells it from others of this sender: the how manyth it is that this one has noted.
    number: u32,
}

impl Mark {
    /// Nobody follows the message.
    pub(crate) const NONE: Self = Self { trace: None, from: 0, number: 0 };

    /// A message that the claimed rank is about to send, noted if its events are; its end is if the receiver's are.
    pub(crate) fn sent(claim: &mut Claim<'_>, bytes: u64, to: LocalRank, envelope: Envelope) -> Self {
        let rank = claim.rank();
        let (own, receivers) = (rank.trace(), rank.node().rank(to).trace());
        if own.is_none() && receivers.is_none() {
            return Self::NONE;
        }
        let number = next_number(claim);
        if let Some(trace) = own {
            trace.note(&message(EventKind::Sent, to, number.into(), bytes, envelope));
        }
        Self { trace: receivers, from: rank.id(), number }
    }

    /// Its data has been copied to its receiver.
    #[inline]
    pub(crate) fn came(&self, bytes: u64, envelope: Envelope) {
        if let Some(trace) = self.trace {
            let flow = self.number.into();
            trace.note(&message(EventKind::Matched, self.from, flow, bytes, envelope));
        }
    }
}

/// Payload of a message whose packed data is in a block of the sender's heap. The
/// receiver frees the block, or [gives it back](crate::eager_buffers) if the message's kind says so.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub(crate) data: *mut u8,
    pub(crate) bytes: u64,
    pub(crate) mark: Mark,
}

/// Where the payload of a message is.
#[derive(Clone, Copy)]
pub(crate) enum Payload<'a> {
    Ring(&'a Front<'a>),
    Stored(RecordRef<Stored>),
}

impl Payload<'_> {
    pub(crate) fn header(&self) -> Header {
        match self {
            Self::Ring(front) => front.header,
            Self::Stored(stored) => stored.header,
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
                    let length = usize::from(stored.header.payload);
                    copy_short(Stored::payload(*stored), out, length);
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

    /// The RTS, if the message is one.
    pub(crate) fn rts(&self) -> Option<Rts> {
        // SAFETY: the kind names the payload's type.
        matches!(self.header().kind, PayloadKind::Rts | PayloadKind::Lent).then(|| unsafe { self.value() })
    }

    /// The message from another node that this one is, if it is one.
    pub(crate) fn arrival(&self) -> Option<RecordRef<Arrival>> {
        match self {
            Self::Stored(stored) => Arrival::in_message(*stored),
            // Rings have messages of this node.
            Self::Ring(_) => None,
        }
    }

    /// Bytes of data of the message.
    pub(crate) fn bytes(&self) -> u64 {
        let header = self.header();
        // SAFETY: the kind names the payload's type.
        unsafe {
            match header.kind {
                PayloadKind::Inline => u64::from(header.payload),
                PayloadKind::Marked => u64::from(header.payload) - size_of::<Mark>() as u64,
                PayloadKind::Block | PayloadKind::EagerBuffer => self.value::<Block>().bytes,
                PayloadKind::Compared => self.value::<Compared>().block.bytes,
                PayloadKind::Rts | PayloadKind::Lent => self.value::<Rts>().bytes,
                PayloadKind::Arrival => self.arrival().map_or(0, |arrival| arrival.bytes),
            }
        }
    }
}

/// Delivers a matched message to a receive that is in no queue. An RTS has been taken.
/// Returns the bytes that were copied already.
///
/// # Safety
/// `request` is a pending receive of the claimed rank, and the message was not delivered before.
pub(crate) unsafe fn deliver(claim: &mut Claim<'_>, payload: &Payload<'_>, request: RecordRef<Operation>) -> u64 {
    let envelope = payload.header().envelope();
    // SAFETY: the caller's promise; a receive has a buffer, which is the engine's now.
    unsafe {
        match payload.header().kind {
            PayloadKind::Inline
            | PayloadKind::Marked
            | PayloadKind::Block
            | PayloadKind::EagerBuffer
            | PayloadKind::Compared => {}
            PayloadKind::Rts | PayloadKind::Lent => {
                return rendezvous::receive(claim, payload.value(), envelope, request);
            }
            PayloadKind::Arrival => {
                return payload.arrival().map_or(0, |arrival| remote::deliver(claim, &arrival, envelope, request));
            }
        }
        if !claim.is_by_owner() {
            return handover::deliver_for_owner(claim, payload, request);
        }
        // The short one by itself: its status goes where it stays in parts, as it comes.
        match payload.header().kind {
            PayloadKind::Inline => {
                let status = eager::receive_inline(payload, request.buffer());
                Operation::complete(request, status);
                status.bytes as u64
            }
            _ => {
                let status = eager::receive(payload, request.buffer());
                Operation::complete(request, status);
                status.bytes as u64
            }
        }
    }
}
