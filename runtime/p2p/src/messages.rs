//! Point-to-point communication (MPI-4.1, chapter 3).

use crate::P2p;
use crate::direct::{DIRECT_POLLS, receive_directly, sender_of};
use crate::matching::{Stored, Want};
use crate::operation::{Operation, OperationKind};
use crate::outbox;
use crate::packed::PackedBlock;
use crate::picture::RoomFor;
use crate::poll::{self, AtFront};
use crate::protocol::choice::{self, Protocol, Sent};
use crate::protocol::{self, Payload, eager};
use crate::remote;
use crate::remote::post_receive;
use crate::state::{is_quiet, outbox_to};
use cohort_base::sync::pause;
use cohort_base::{LocalRank, Peer};
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::message::{Envelope, SendMode, Source, Status, Tag};
use cohort_core::owner::Owner;
use cohort_core::record::RecordRef;
use cohort_core::request::RequestRef;
use cohort_core::wait::until_claimed;
use cohort_datatype::Buffer;
use cohort_net::Net;

/// Messages that may wait for room to one receiver before a blocking send waits too.
const WAITING_MAX: u32 = 1024;

/// Starts a send (`MPI_Isend`, `MPI_Issend`, `MPI_Irsend`).
///
/// # Errors
/// [`EngineError::OutOfMemory`]; nothing was sent then.
pub fn isend(
    claim: &mut Claim<'_>,
    buffer: Buffer<'_>,
    to: Peer,
    envelope: Envelope,
    mode: SendMode,
) -> Result<RequestRef, EngineError> {
    start_send(claim, &buffer, to, &envelope, (mode, false))
}

/// Starts a send whose caller waits for its end in the call, or does not.
#[inline(always)]
fn start_send(
    claim: &mut Claim<'_>,
    buffer: &Buffer<'_>,
    to: Peer,
    envelope: &Envelope,
    (mode, waits): (SendMode, bool),
) -> Result<RequestRef, EngineError> {
    let node = claim.rank().node();
    let Some(to) = node.local(to) else {
        let net = Net::of(node).ok_or(EngineError::Unsupported)?;
        let started = remote::isend(claim, net, *buffer, to, *envelope, mode);
        return started.or_else(|error| failed_at_once(claim, error));
    };
    if !outbox_to(claim, to).is_free() && !claim.of::<P2p>().posted.is_empty() {
        make_way(claim, to);
    }
    let protocol = Protocol::of_own(claim, buffer.bytes(), envelope, mode, waits);
    match protocol.start(claim, buffer, to, envelope) {
        Ok(Sent::Now) => Ok(claim.rank().sent()),
        Ok(Sent::Later(request)) => Ok(request),
        Err(error) => failed_at_once(claim, error),
    }
}

/// Before a send to a rank for which others wait for room already: it may have as many on their way to this rank, and
/// take none before it has sent them, so this rank takes those that it has receives for.
#[cold]
fn make_way(claim: &mut Claim<'_>, to: LocalRank) {
    let mut taken = 0_u32;
    poll::pull(claim, Some(Peer::local(to)), |claim| {
        taken += 1;
        claim.of::<P2p>().posted.is_empty()
    });
    if taken > 0 {
        outbox::flush_only(claim, to);
    }
}

/// The request of a send that fails as it begins: what the failure of a process ends, its end tells.
#[cold]
fn failed_at_once(claim: &mut Claim<'_>, error: EngineError) -> Result<RequestRef, EngineError> {
    let Some(error) = error.as_failure() else {
        return Err(error);
    };
    RequestRef::completed(claim, Status { error, ..Status::EMPTY }).ok_or(EngineError::OutOfMemory)
}

/// Starts the send of a request that was made before, and completes that if the send is over. An error is the
/// request's.
///
/// # Safety
/// `request` is a pending send of the claimed rank, in no list.
pub unsafe fn start_posted(
    claim: &mut Claim<'_>,
    request: RecordRef<Operation>,
    protocol: Protocol,
    to: LocalRank,
    envelope: Envelope,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let error = match protocol.start_request(claim, request, to, envelope) {
            Ok(false) => return,
            Ok(true) => Status::SUCCESS,
            Err(error) => error.as_failure().unwrap_or(Status::NO_MEMORY),
        };
        Operation::complete(request, Status { error, ..Status::EMPTY });
    }
}

/// Starts a send of packed bytes in a block of the claimed rank's heap, which the engine frees when the message has
/// left (`MPI_Bsend`).
///
/// # Errors
/// [`EngineError::OutOfMemory`]; nothing was sent then.
pub fn isend_owned(
    claim: &mut Claim<'_>,
    block: PackedBlock,
    to: Peer,
    envelope: Envelope,
) -> Result<RequestRef, EngineError> {
    let node = claim.rank().node();
    let Some(to) = node.local(to) else {
        let net = Net::of(node).ok_or(EngineError::Unsupported)?;
        remote::isend_owned(claim, net, block, to, envelope)?;
        return Ok(claim.rank().sent());
    };
    choice::send_owned(claim, block, to, envelope)?;
    Ok(claim.rank().sent())
}

/// Starts a receive (`MPI_Irecv`).
///
/// # Errors
/// [`EngineError::OutOfMemory`]; nothing was posted then.
pub fn irecv(
    claim: &mut Claim<'_>,
    buffer: Buffer<'_>,
    from: Source,
    context: u32,
    tag: Tag,
) -> Result<RequestRef, EngineError> {
    let want = Want::new(claim.rank().node(), from, context, tag);
    let made = Operation::make(claim, &OperationKind::Receive, buffer, want).ok_or(EngineError::OutOfMemory)?;
    // SAFETY: the request is fresh and ours.
    unsafe { start_receive(claim, made, sender_of(from)) };
    // SAFETY: fresh, and this is its only reference.
    Ok(unsafe { Operation::handle(made) })
}

/// What [`receive_or_start`] did.
#[derive(Debug)]
#[must_use]
pub enum Received {
    /// The message was here, and needed no request; the caller has its status.
    Now,
    /// The receive was started.
    Later(RequestRef),
}

/// As [`irecv`], but without a request if the message is here: stored, or at the front of a ring. For the rank's own
/// task.
///
/// Here and below the status is written where it is read, and the buffer read where it is: what is passed on by value
/// is copied in wide words, each of which waits until the narrow stores of its parts have left the core.
///
/// # Errors
/// [`EngineError::OutOfMemory`]; nothing was received then.
#[inline]
pub fn receive_or_start(
    claim: &mut Claim<'_>,
    buffer: &Buffer<'_>,
    (from, context, tag): (Source, u32, Tag),
    status: &mut Status,
) -> Result<Received, EngineError> {
    let want = Want::new(claim.rank().node(), from, context, tag);
    let sender = sender_of(from);
    match take_to_start(claim, buffer, sender, &want, status) {
        Here::Taken => Ok(Received::Now),
        here => start_after(claim, buffer, sender, want, here).map(Received::Later),
    }
}

/// Starts a receive for which [`take`] has found `here`.
///
/// # Errors
/// As for [`irecv`].
#[inline(always)]
fn start_after(
    claim: &mut Claim<'_>,
    buffer: &Buffer<'_>,
    sender: Option<Peer>,
    want: Want,
    here: Here,
) -> Result<RequestRef, EngineError> {
    let request = Operation::make(claim, &OperationKind::Receive, *buffer, want).ok_or(EngineError::OutOfMemory)?;
    // SAFETY: the request is fresh and ours, and this is its only reference.
    unsafe {
        match here {
            Here::Stored => start_receive(claim, request, sender),
            Here::Absent => {
                post_receive(claim, request);
                if let Some(sender) = sender.and_then(|peer| claim.rank().node().local(peer)) {
                    poll::look_behind_post(claim, sender, &request);
                }
            }
            _ => post_and_pull(claim, request, sender),
        }
        Ok(Operation::handle(request))
    }
}

/// Whether a message is here that a receive wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Here {
    /// It has been received.
    Taken,
    /// It is stored, without its data.
    Stored,
    /// None is stored, and those in the rings take the usual way.
    Unclear,
    /// No: nothing is stored that fits, and the rings were empty, or the receive may line up unseen.
    Absent,
}

/// Takes the message that is wanted, if it is here with its data: stored, or at the front of a ring of `from`, or of
/// anybody.
#[inline(always)]
pub(crate) fn take(
    claim: &mut Claim<'_>,
    buffer: &Buffer<'_>,
    from: Option<Peer>,
    want: &Want,
    status: &mut Status,
) -> Here {
    match take_known(claim, buffer, want, status) {
        Here::Unclear => take_due(claim, buffer, from, want, status),
        known => known,
    }
}

/// Whether a receive that begins and does not wait lines up unseen ([`poll::may_line_up`]). A long one does not: the
/// sooner its data is copied the better, and one line is little then.
#[inline(always)]
fn may_line_up(claim: &mut Claim<'_>, buffer: &Buffer<'_>, from: Option<Peer>) -> bool {
    let node = claim.rank().node();
    let is_near = from.is_some_and(|peer| node.local(peer).is_some());
    is_near && node.is_eager(buffer.bytes()) && poll::may_line_up(claim)
}

/// [`take`] for a receive that begins and does not wait: it looks into rings if that is worth it.
#[inline(always)]
pub(crate) fn take_to_start(
    claim: &mut Claim<'_>,
    buffer: &Buffer<'_>,
    from: Option<Peer>,
    want: &Want,
    status: &mut Status,
) -> Here {
    match take_known(claim, buffer, want, status) {
        Here::Unclear if may_line_up(claim, buffer, from) => Here::Absent,
        Here::Unclear => {
            let here = take_due(claim, buffer, from, want, status);
            if here == Here::Absent {
                let looks = &mut claim.of::<P2p>().looks;
                *looks = looks.saturating_sub(1);
            }
            here
        }
        known => known,
    }
}

/// [`take`] of what is stored: `Unclear` if no message that is wanted is.
#[inline(always)]
fn take_known(claim: &mut Claim<'_>, buffer: &Buffer<'_>, want: &Want, status: &mut Status) -> Here {
    let heap = claim.heap();
    let Some(stored) = claim.of::<P2p>().unexpected.find(want, heap) else {
        return Here::Unclear;
    };
    // SAFETY: it was found in the queue.
    match unsafe { receive_stored(claim, stored, buffer, status) } {
        true => Here::Taken,
        false => Here::Stored,
    }
}

/// [`take`] of what is not stored.
#[inline(always)]
fn take_due(claim: &mut Claim<'_>, buffer: &Buffer<'_>, from: Option<Peer>, want: &Want, status: &mut Status) -> Here {
    match poll::due(claim, from, want) {
        AtFront::Due(due) => {
            // SAFETY: what is due is no RTS, and is popped below.
            unsafe { eager::receive_into(&due.payload(), *buffer, status) };
            due.pop(claim.rank());
            Here::Taken
        }
        AtFront::Unclear => Here::Unclear,
        AtFront::Nothing => Here::Absent,
    }
}

/// Receives a stored message that has its data with it, and takes it out of its queue. `false`: it is of another kind,
/// and nothing was done.
///
/// # Safety
/// `stored` is in the queue.
unsafe fn receive_stored(
    claim: &mut Claim<'_>,
    stored: RecordRef<Stored>,
    buffer: &Buffer<'_>,
    status: &mut Status,
) -> bool {
    let payload = Payload::Stored(stored);
    if !payload.header().kind.is_eager() {
        return false;
    }
    claim.of::<P2p>().unexpected.remove(stored);
    // SAFETY: the message is eager; nobody else knows it once it is out of the queue.
    unsafe {
        eager::receive_into(&payload, *buffer, status);
        stored.free(claim);
    }
    true
}

/// Gives a receive its message if that is here, or posts it. `from` is the only sender it may take from.
///
/// # Safety
/// `request` is a pending receive of the claimed rank, in no queue.
pub unsafe fn start_receive(claim: &mut Claim<'_>, request: RecordRef<Operation>, from: Option<Peer>) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(stored) = take_stored(claim, &request.want) {
            deliver_stored(claim, stored, request);
        } else if let AtFront::Due(due) = poll::due(claim, from, &request.want) {
            protocol::deliver(claim, &due.payload(), request);
            due.pop(claim.rank());
        } else {
            post_and_pull(claim, request, from);
        }
    }
}

/// The rest of [`start_receive`] when no message is here that is known.
///
/// # Safety
/// As there.
#[inline]
unsafe fn post_and_pull(claim: &mut Claim<'_>, request: RecordRef<Operation>, from: Option<Peer>) {
    post_receive(claim, request);
    poll::pull_for(claim, from, &request);
}

/// The oldest stored message that is wanted, taken for good and out of its queue.
pub(crate) fn take_stored(claim: &mut Claim<'_>, want: &Want) -> Option<RecordRef<Stored>> {
    let heap = claim.heap();
    while let Some(stored) = claim.of::<P2p>().unexpected.find(want, heap) {
        claim.of::<P2p>().unexpected.remove(stored);
        // SAFETY: what was in the queue is not taken yet; then nobody else knows it.
        unsafe {
            if poll::take(&Payload::Stored(stored)) {
                return Some(stored);
            }
            stored.free(claim);
        }
    }
    None
}

/// Delivers a stored message that was taken, and frees it.
///
/// # Safety
/// `stored` came from [`take_stored`]; `request` is a pending receive in no queue.
pub(crate) unsafe fn deliver_stored(claim: &mut Claim<'_>, stored: RecordRef<Stored>, request: RecordRef<Operation>) {
    // SAFETY: the caller's promise.
    unsafe {
        protocol::deliver(claim, &Payload::Stored(stored), request);
        stored.free(claim);
    }
}

/// Sends and waits until the send is complete (`MPI_Send`, `MPI_Ssend`, `MPI_Rsend`).
///
/// # Errors
/// [`EngineError::OutOfMemory`]; nothing was sent then.
#[inline]
pub fn send(
    owner: Owner<'_>,
    buffer: Buffer<'_>,
    to: Peer,
    envelope: Envelope,
    mode: SendMode,
) -> Result<(), EngineError> {
    let rank = owner.rank();
    let mut claim = rank.enter();
    let Some(near) = rank.node().local(to) else {
        let request = send_waiting(&mut claim, buffer, to, envelope, mode)?;
        let status = finish(owner, claim, request);
        return EngineError::of_failure(status.error).map_or(Ok(()), Err);
    };
    let protocol = Protocol::of_own(&mut claim, buffer.bytes(), &envelope, mode, true);
    match protocol.start(&mut claim, &buffer, near, &envelope)? {
        Sent::Now => {
            let has_room = |claim: &mut Claim<'_>| outbox_to(claim, near).waiting.get() <= WAITING_MAX;
            if !has_room(&mut claim) {
                drop(until_claimed(owner, claim, RoomFor(to), has_room));
                return sent(rank.node().has_failed(to));
            }
        }
        Sent::Later(request) => {
            let status = finish(owner, claim, request);
            return EngineError::of_failure(status.error).map_or(Ok(()), Err);
        }
    }
    Ok(())
}

/// The end of a send that has waited for room.
fn sent(has_failed: bool) -> Result<(), EngineError> {
    if has_failed { Err(EngineError::Failed) } else { Ok(()) }
}

/// [`isend`] by the rank's own task, in a call that waits until the send is complete.
///
/// # Errors
/// As there, and as said.
pub fn send_waiting(
    claim: &mut Claim<'_>,
    buffer: Buffer<'_>,
    to: Peer,
    envelope: Envelope,
    mode: SendMode,
) -> Result<RequestRef, EngineError> {
    start_send(claim, &buffer, to, &envelope, (mode, true))
}

/// Waits for a request and releases it.
fn finish<'rank>(owner: Owner<'rank>, claim: Claim<'rank>, request: RequestRef) -> Status {
    let mut claim = until_claimed(owner, claim, &request, |_| request.is_complete());
    let status = request.status();
    request.release(&mut claim);
    status
}

/// Receives and waits until the message has arrived (`MPI_Recv`). A truncated message gives
/// [`Status::TRUNCATE`] in the status, not an `Err`.
///
/// # Errors
/// [`EngineError::OutOfMemory`]; nothing was received then.
#[inline]
pub fn recv(owner: Owner<'_>, buffer: Buffer<'_>, from: Source, context: u32, tag: Tag) -> Result<Status, EngineError> {
    let mut status = Status::EMPTY;
    recv_into(owner, buffer, (from, context, tag), &mut status).map(|()| status)
}

/// [`recv`] with the status where it is read.
///
/// # Errors
/// As there.
#[inline]
pub fn recv_into(
    owner: Owner<'_>,
    buffer: Buffer<'_>,
    (from, context, tag): (Source, u32, Tag),
    status: &mut Status,
) -> Result<(), EngineError> {
    let rank = owner.rank();
    let mut claim = rank.enter();
    if let Source::Rank { peer, .. } = from
        && let Some(sender) = rank.node().local(peer)
    {
        let want = Want::new(rank.node(), from, context, tag);
        if let Some(received) = receive_directly(&mut claim, sender, &want, buffer) {
            *status = received;
            return Ok(());
        }
    }
    receive_or_wait(owner, claim, &buffer, (from, context, tag), status)
}

/// The rest of [`recv_into`], when the message has not come as directly as the call looked for it.
///
/// # Errors
/// As there.
#[inline(never)]
pub(crate) fn receive_or_wait<'rank>(
    owner: Owner<'rank>,
    mut claim: Claim<'rank>,
    buffer: &Buffer<'_>,
    asked: (Source, u32, Tag),
    status: &mut Status,
) -> Result<(), EngineError> {
    let (from, context, tag) = asked;
    let want = Want::new(claim.rank().node(), from, context, tag);
    let sender = sender_of(from);
    let mut here = take(&mut claim, buffer, sender, &want, status);
    if here == Here::Absent && sender.is_none() {
        here = poll_any(&mut claim, buffer, &want, status);
    }
    if here != Here::Taken {
        let request = start_after(&mut claim, buffer, sender, want, here)?;
        *status = finish(owner, claim, request);
    }
    Ok(())
}

/// The fast path of a blocking receive from any source for which nothing is here: polls all rings for a while, as
/// [`receive_directly`] polls one.
fn poll_any(claim: &mut Claim<'_>, buffer: &Buffer<'_>, want: &Want, status: &mut Status) -> Here {
    let rank = claim.rank();
    if !rank.polls_directly() || want.may_be_remote() || !is_quiet(claim) {
        return Here::Absent;
    }
    let count = rank.shared::<P2p>().inbox.count();
    for _ in 0..DIRECT_POLLS / count.max(1) {
        match take_due(claim, buffer, None, want, status) {
            Here::Absent => pause(),
            here => return here,
        }
    }
    Here::Absent
}
