//! Rendezvous: the receiver copies straight from the sender's buffer.
//!
//! The sender posts an [`Offer`] with the address of its request. Whoever matches it with a
//! receive, under the receiver's claim, takes the offer (from then on the send cannot be
//! withdrawn), copies from user buffer to user buffer, and completes both requests.

use crate::matching::Want;
use crate::noted::message;
use crate::operation::{Offer, Operation, OperationKind, copy_guarded, copy_range};
use crate::outbox;
use crate::protocol::handover::leave_to_owner;
use crate::protocol::{jobs, relayed, types};
use crate::relay::Relay;
use crate::ring::{Header, PayloadKind};
use crate::state::{join_offers, leave_offers};
use cohort_base::trace;
use cohort_base::{LocalRank, Peer};
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::message::{Envelope, Status};
use cohort_core::record::RecordRef;
use cohort_core::request::RequestRef;
use cohort_datatype::Buffer;
use core::ptr::null;

/// Longest message that is copied at once under the receiver's claim; longer ones become a [`CopyJob`].
pub(crate) const AT_ONCE_MAX: u64 = 64 << 10;

/// Offers a message.
pub(crate) fn send(
    claim: &mut Claim<'_>,
    buffer: Buffer<'_>,
    to: LocalRank,
    envelope: Envelope,
) -> Result<RequestRef, EngineError> {
    let request =
        Operation::make(claim, &OperationKind::Offer, buffer, Want::NOTHING).ok_or(EngineError::OutOfMemory)?;
    // SAFETY: the request is ours, pending and in no list.
    unsafe { offer_fresh(claim, request, to, envelope, None) }
}

/// [`send`] by the rank's own task of a message that passes through a relay of the rank, if one is free.
pub(crate) fn send_relayed(
    claim: &mut Claim<'_>,
    buffer: Buffer<'_>,
    to: LocalRank,
    envelope: Envelope,
) -> Result<RequestRef, EngineError> {
    let request =
        Operation::make(claim, &OperationKind::Offer, buffer, Want::NOTHING).ok_or(EngineError::OutOfMemory)?;
    // SAFETY: as in `send`.
    unsafe {
        let relay = relayed::begin(claim, request, buffer);
        let sent = offer_fresh(claim, request, to, envelope, relay)?;
        relayed::fill(claim);
        Ok(sent)
    }
}

/// Offers the message of a send that was just made, and gives out its reference.
///
/// # Safety
/// As for [`offer_through`].
unsafe fn offer_fresh(
    claim: &mut Claim<'_>,
    request: RecordRef<Operation>,
    to: LocalRank,
    envelope: Envelope,
    relay: Option<RecordRef<Relay>>,
) -> Result<RequestRef, EngineError> {
    // SAFETY: the caller's promise; this is the only reference.
    unsafe {
        if let Err(error) = offer_through(claim, request, to, envelope, relay) {
            Operation::complete_quietly(request, Status::EMPTY);
            Operation::handle(request).release(claim);
            return Err(error);
        }
        Ok(Operation::handle(request))
    }
}

/// Offers the message of a send request.
///
/// # Errors
/// [`EngineError::OutOfMemory`]: nothing was offered, and the request is as it was.
///
/// # Safety
/// `request` is a pending send of the claimed rank, in no list.
pub unsafe fn offer(
    claim: &mut Claim<'_>,
    request: RecordRef<Operation>,
    to: LocalRank,
    envelope: Envelope,
) -> Result<(), EngineError> {
    // SAFETY: the caller's promise.
    unsafe { offer_through(claim, request, to, envelope, None) }
}

/// [`offer`], through a relay if there is one.
///
/// # Safety
/// As there; the relay is that of the send.
unsafe fn offer_through(
    claim: &mut Claim<'_>,
    request: RecordRef<Operation>,
    to: LocalRank,
    envelope: Envelope,
    relay: Option<RecordRef<Relay>>,
) -> Result<(), EngineError> {
    // SAFETY: the caller's promise; the offer is a plain value.
    unsafe {
        let buffer = request.buffer();
        let data = buffer.contiguous().map_or(null(), <*mut u8>::cast_const);
        let offer = Offer::new(Some(request), buffer.bytes(), data, relay);
        let header = Header::new(envelope, PayloadKind::Offer, size_of::<Offer>());
        if let Some(ring) = claim.rank().trace() {
            let flow = request.as_ptr().addr() as u64;
            ring.note(&message(trace::EventKind::Sent, to, flow, offer.bytes, envelope));
        }
        (*request.as_ptr()).want = Want::of_send(Peer::local(to), &envelope);
        join_offers(claim, request);
        let posted = outbox::post(claim, to, header, (&raw const offer).cast());
        if posted.is_err() {
            leave_offers(claim, request);
        }
        posted
    }
}

/// Receives an offer that was taken: copies it at once or makes a job. Returns the bytes copied.
///
/// # Safety
/// `receive` is a pending receive of the claimed rank in no queue.
pub(crate) unsafe fn receive(
    claim: &mut Claim<'_>,
    offer: Offer,
    envelope: Envelope,
    receive: RecordRef<Operation>,
) -> u64 {
    let Some(sent) = offer.request else {
        unreachable!("an offer is that of a send");
    };
    // SAFETY: the caller's promise; a taken offer's request is valid until we complete it.
    unsafe {
        let capacity = receive.buffer().bytes();
        let mut status = Status::delivered(envelope, offer.bytes, capacity);
        if claim.rank().node().settings().check_members {
            status = types::judge_buffers(envelope, status, sent.buffer(), receive.buffer());
        }
        let bytes = status.bytes as u64;
        if let Some(ring) = claim.rank().trace() {
            let from = sent.request.owner().id();
            let flow = sent.as_ptr().addr() as u64;
            ring.note(&message(trace::EventKind::Matched, from, flow, offer.bytes, envelope));
        }
        let relay = relayed::relay_of(claim, &offer);
        if relay.is_none() && bytes > AT_ONCE_MAX && jobs::start(claim, offer, receive, status) {
            return 0;
        }
        let copied = match relay {
            Some(relay) => relayed::copy(claim, &offer, &receive, relay, bytes),
            None => copy_guarded(&offer, &receive, 0, bytes),
        };
        if let Err(side) = copied {
            if leave_to_owner(claim, offer, receive, status, side) {
                return 0;
            }
            copy_range(&offer, &receive, 0, bytes);
        }
        Operation::complete(sent, Status::EMPTY);
        Operation::complete(receive, status);
        bytes
    }
}
