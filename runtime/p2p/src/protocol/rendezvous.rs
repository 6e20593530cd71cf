//! Rendezvous: the receiver copies straight from the sender's buffer.
//!
//! The sender posts an [`Rts`] with the address of its request. Whoever matches it with a
//! receive, under the receiver's claim, takes the RTS (from then on the send cannot be
//! withdrawn), copies from user buffer to user buffer, and completes both requests.

use crate::P2p;
use crate::matching::Want;
use crate::noted::message;
use crate::operation::{Operation, OperationKind, Rts, copy_guarded, copy_range};
use crate::outbox;
use crate::pipeline::Pipeline;
use crate::protocol::handover::leave_to_owner;
use crate::protocol::{jobs, lent, pipelined, types};
use crate::ring::{Header, PayloadKind};
use crate::state::{join_offers, leave_offers};
use cohort_alloc::Heap;
use cohort_base::trace;
use cohort_base::{LocalRank, Peer};
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::message::{Envelope, Status};
use cohort_core::record::RecordRef;
use cohort_core::request::RequestRef;
use cohort_datatype::Buffer;
use core::ptr::{NonNull, null};

/// Longest message that is copied at once under the receiver's claim; longer ones become a [`CopyJob`].
pub(crate) const AT_ONCE_MAX: u64 = 64 << 10;

/// The request of a send that is to be offered.
fn fresh(claim: &mut Claim<'_>, buffer: Buffer<'_>) -> Result<RecordRef<Operation>, EngineError> {
    Operation::make(claim, &OperationKind::Rts, buffer, Want::NOTHING).ok_or(EngineError::OutOfMemory)
}

/// Offers a message.
pub(crate) fn send(
    claim: &mut Claim<'_>,
    buffer: Buffer<'_>,
    to: LocalRank,
    envelope: Envelope,
) -> Result<RequestRef, EngineError> {
    let request = fresh(claim, buffer)?;
    // SAFETY: the request is ours, pending and in no list.
    unsafe { rts_fresh(claim, request, to, (envelope, PayloadKind::Rts), None) }
}

/// [`send`] by the rank's own task of a message that passes through a pipeline of the rank, if one is free.
pub(crate) fn send_pipelined(
    claim: &mut Claim<'_>,
    buffer: Buffer<'_>,
    to: LocalRank,
    envelope: Envelope,
) -> Result<RequestRef, EngineError> {
    let request = fresh(claim, buffer)?;
    // SAFETY: as in `send`.
    unsafe {
        let pipeline = pipelined::begin(claim, request, buffer);
        let sent = rts_fresh(claim, request, to, (envelope, PayloadKind::Rts), pipeline)?;
        pipelined::fill(claim);
        Ok(sent)
    }
}

/// [`send`] by the rank's own task of a message that is [`lent`].
#[inline(never)]
pub(crate) fn send_lent(
    claim: &mut Claim<'_>,
    buffer: Buffer<'_>,
    to: LocalRank,
    envelope: Envelope,
) -> Result<RequestRef, EngineError> {
    let request = fresh(claim, buffer)?;
    request.is_lent.set(true);
    claim.of::<P2p>().lending.began();
    // SAFETY: as in `send`.
    unsafe { rts_fresh(claim, request, to, (envelope, PayloadKind::Lent), None) }
}

/// Offers the message of a send that was just made, and gives out its reference.
///
/// # Safety
/// As for [`rts_through`].
unsafe fn rts_fresh(
    claim: &mut Claim<'_>,
    request: RecordRef<Operation>,
    to: LocalRank,
    message: (Envelope, PayloadKind),
    pipeline: Option<RecordRef<Pipeline>>,
) -> Result<RequestRef, EngineError> {
    // SAFETY: the caller's promise; this is the only reference.
    unsafe {
        if let Err(error) = rts_through(claim, request, to, message, pipeline) {
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
pub unsafe fn rts(
    claim: &mut Claim<'_>,
    request: RecordRef<Operation>,
    to: LocalRank,
    envelope: Envelope,
) -> Result<(), EngineError> {
    // SAFETY: the caller's promise.
    unsafe { rts_through(claim, request, to, (envelope, PayloadKind::Rts), None) }
}

/// [`rts`], through a pipeline if there is one.
///
/// # Safety
/// As there; the pipeline is that of the send.
unsafe fn rts_through(
    claim: &mut Claim<'_>,
    request: RecordRef<Operation>,
    to: LocalRank,
    (envelope, kind): (Envelope, PayloadKind),
    pipeline: Option<RecordRef<Pipeline>>,
) -> Result<(), EngineError> {
    // SAFETY: the caller's promise; the RTS is a plain value.
    unsafe {
        let buffer = request.buffer();
        let data = buffer.contiguous().map_or(null(), <*mut u8>::cast_const);
        let rts = Rts::new(Some(request), buffer.bytes(), data, pipeline);
        let header = Header::new(envelope, kind, size_of::<Rts>());
        if let Some(ring) = claim.rank().trace() {
            let flow = request.as_ptr().addr() as u64;
            ring.note(&message(trace::EventKind::Sent, to, flow, rts.bytes, envelope));
        }
        (*request.as_ptr()).want = Want::of_send(Peer::local(to), &envelope);
        join_offers(claim, request);
        let posted = outbox::post(claim, to, header, (&raw const rts).cast());
        if posted.is_err() {
            leave_offers(claim, request);
        }
        posted
    }
}

/// Receives an RTS that was taken: copies it at once or makes a job. Returns the bytes copied.
///
/// # Safety
/// `receive` is a pending receive of the claimed rank in no queue.
pub(crate) unsafe fn receive(
    claim: &mut Claim<'_>,
    rts: Rts,
    envelope: Envelope,
    receive: RecordRef<Operation>,
) -> u64 {
    // SAFETY: the caller's promise; a taken RTS's request is valid until we complete it, or take its copy.
    unsafe {
        let rts = lent::taken(rts);
        let capacity = receive.buffer().bytes();
        let mut status = Status::delivered(envelope, rts.bytes, capacity);
        if claim.rank().node().settings().check_types
            && let Some(sent) = rts.request
        {
            status = types::judge_buffers(envelope, status, sent.buffer(), receive.buffer());
        }
        let bytes = status.bytes as u64;
        if let Some(ring) = claim.rank().trace()
            && let Some(sent) = rts.request
        {
            let from = sent.request.owner().id();
            let flow = sent.as_ptr().addr() as u64;
            ring.note(&message(trace::EventKind::Matched, from, flow, rts.bytes, envelope));
        }
        lent::judge(claim, &rts);
        let pipeline = pipelined::pipeline_of(claim, &rts);
        if pipeline.is_none() && bytes > AT_ONCE_MAX && jobs::start(claim, rts, receive, status) {
            return 0;
        }
        let copied = match pipeline {
            Some(pipeline) => pipelined::copy(claim, &rts, &receive, pipeline, bytes),
            None => copy_guarded(&rts, &receive, 0, bytes),
        };
        if let Err(side) = copied {
            if leave_to_owner(claim, rts, receive, status, side) {
                return 0;
            }
            copy_range(&rts, &receive, 0, bytes);
        }
        match rts.request {
            Some(sent) => Operation::complete(sent, Status::EMPTY),
            None => Heap::free(NonNull::new_unchecked(rts.data.cast_mut())),
        }
        Operation::complete(receive, status);
        bytes
    }
}
