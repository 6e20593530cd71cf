//! Sends to remote peers.
//!
//! A short message travels with its data and is complete at once. Others are *offered*: the sender
//! keeps an [`Outbound`] until the receiver has matched the offer and either read the data out of
//! the sender's memory (one run of bytes, and a network that can), or asked for it in packets.
//!
//! ```text
//! Offered ──Done──────────────────────────► Over   (read by the receiver, or synchronous)
//!    │ ────Clear──► Streaming ⇄ Leaving ───► Over   (all packets have left)
//!    └ ────Retracted, not matched──────────► Over   (MPI_Cancel)
//! ```
//! What is over is completed after the poll that found it, because the region must be withdrawn before the
//! program may have its buffer back, and handlers of events must not call the transport.

use super::{Remote, traced};
use crate::matching::Want;
use crate::operation::{self, Operation};
use cohort_alloc::Heap;
use cohort_base::{LocalRank, Peer};
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::list::{Linked, Links};
use cohort_core::message::{Envelope, SendMode, Status};
use cohort_core::request::RequestRef;
use cohort_core::subsystem::{Mark, hooks};
use cohort_datatype::{self as datatype, Buffer};
use cohort_fabric::Region;
use cohort_net::link::{self, Link, Outgoing, line_up, link_to};
use cohort_net::names::{self, Name, What};
use cohort_net::wire::{Header, Kind, MATCHED, READABLE, SYNCHRONOUS};
use cohort_net::{Net, kick};
use cohort_steal::TaskKind;
use core::mem::size_of;
use core::ptr::{NonNull, null_mut};

/// Data packets of one message that may be on their way at a time.
const STREAM_DEPTH: u32 = 8;

/// [`Links`] of the lists of sends.
pub(super) const IN_SENDS: u8 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The receiver has not answered.
    Offered,
    /// The receiver takes the data in packets, of which more may be lined up.
    Streaming,
    /// All of these are lined up that may be for now. No turn looks at it before one of them has left.
    Leaving,
    /// The data is with the receiver, or nobody wants it.
    Over,
}

/// A send that waits for its receiver. In the list that its stage names.
#[derive(Debug)]
pub(crate) struct Outbound {
    /// Null when nobody waits for the send.
    request: *mut Operation,
    peer: Peer,
    stage: Stage,
    /// Whether the receiver has been asked to forget the offer and has not answered.
    is_retracted: bool,
    is_cancelled: bool,
    region: Option<Region>,
    /// The data if it is one run, else null: the request has the buffer.
    data: *const u8,
    /// A block of the heap that holds the data, if it is the engine's.
    block: *mut u8,
    bytes: u64,
    /// By which the receiver answers.
    name: Name,
    /// The receiver's operation.
    receive: Name,
    /// The part of the data that the receiver wants, and how much of it was lined up.
    wanted: u64,
    next: u64,
    /// Packets that have not left.
    packets: u32,
    /// What the policy remembers of it.
    mark: Mark,
    links: Links<Self>,
}

impl Linked<IN_SENDS> for Outbound {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).links }
    }
}

/// Starts a send; the way of [`crate::isend`] to a remote peer.
///
/// # Safety
/// The buffer is readable until the request is complete.
#[cold]
pub(crate) unsafe fn isend(
    claim: &mut Claim<'_>,
    net: &Net,
    buffer: Buffer<'_>,
    to: Peer,
    envelope: Envelope,
    mode: SendMode,
) -> Result<RequestRef, EngineError> {
    let mut link = link_to(claim, to)?;
    traced::sent(claim, to, envelope, buffer.bytes());
    // SAFETY: links belong to the claim's holder.
    let fits =
        buffer.bytes() <= net.eager_max && unsafe { link.as_mut() }.take_window(buffer.bytes());
    // SAFETY: the caller's promise.
    unsafe {
        if fits && mode != SendMode::Synchronous {
            if send_directly(claim, net, link, buffer, envelope) {
                return Ok(claim.rank().sent());
            }
            send_eagerly(claim, link, buffer, envelope, null_mut())?;
            kick(claim);
            return Ok(claim.rank().sent());
        }
        let request = Operation::make(
            claim,
            &operation::Kind::Remote,
            buffer,
            Want::of_send(to, &envelope),
        )
        .ok_or(EngineError::OutOfMemory)?;
        let data = buffer.contiguous().unwrap_or(null_mut());
        let outbound = Outbound::make(claim, request.as_ptr(), to, data, buffer.bytes());
        let sent = match outbound {
            Some(outbound) if fits => send_eagerly(claim, link, buffer, envelope, outbound),
            Some(outbound) => offer(claim, net, link, outbound, envelope, mode),
            None => {
                if fits {
                    link.as_mut().give_window(link::cost(buffer.bytes()));
                }
                Err(EngineError::OutOfMemory)
            }
        };
        if let Err(error) = sent {
            Operation::complete_quietly(request.as_ptr(), Status::EMPTY);
            Operation::handle(request).release(claim);
            return Err(error);
        }
        kick(claim);
        Ok(Operation::handle(request))
    }
}

/// Sends a block of packed bytes that is the engine's from now on, also in case of an error; the way of
/// [`crate::isend_owned`] to a remote peer.
///
/// # Safety
/// `block` came from the claimed rank's heap and holds `bytes` bytes.
#[cold]
pub(crate) unsafe fn isend_owned(
    claim: &mut Claim<'_>,
    net: &Net,
    block: NonNull<u8>,
    bytes: u64,
    to: Peer,
    envelope: Envelope,
) -> Result<(), EngineError> {
    // SAFETY: the caller's promise.
    let sent = unsafe { send_block(claim, net, block, bytes, to, envelope) };
    if sent.is_err() {
        // SAFETY: nobody else has it.
        unsafe { claim.free_local(block) };
    }
    kick(claim);
    sent
}

/// # Safety
/// As for [`isend_owned`]; in case of an error the block is the caller's.
unsafe fn send_block(
    claim: &mut Claim<'_>,
    net: &Net,
    block: NonNull<u8>,
    bytes: u64,
    to: Peer,
    envelope: Envelope,
) -> Result<(), EngineError> {
    let mut link = link_to(claim, to)?;
    traced::sent(claim, to, envelope, bytes);
    // SAFETY: links belong to the claim's holder; the caller's promise for the block.
    unsafe {
        if bytes <= net.eager_max && link.as_mut().take_window(bytes) {
            let header = traced::header(claim, Kind::Eager, envelope, bytes, 0);
            let packet = Outgoing::referring(claim, header, block.as_ptr(), bytes as usize)
                .inspect_err(|_| link.as_mut().give_window(link::cost(bytes)))?;
            Outgoing::owns(packet, block);
            line_up(claim, link, packet);
            return Ok(());
        }
        let outbound = Outbound::make(claim, null_mut(), to, block.as_ptr(), bytes)
            .ok_or(EngineError::OutOfMemory)?;
        offer(claim, net, link, outbound, envelope, SendMode::Standard)?;
        (*outbound).block = block.as_ptr();
    }
    Ok(())
}

/// Sends a message with its data, whose cost was taken from the window, out of the buffer. False if that has to be
/// copied.
///
/// # Safety
/// The buffer's data is readable; the link is the claimed rank's.
unsafe fn send_directly(
    claim: &mut Claim<'_>,
    net: &Net,
    link: NonNull<Link>,
    buffer: Buffer<'_>,
    envelope: Envelope,
) -> bool {
    let bytes = buffer.bytes();
    let data: &[u8] = match buffer.contiguous() {
        // The address of nothing may be any.
        _ if bytes == 0 => &[],
        // SAFETY: the caller's promise.
        Some(start) => unsafe { core::slice::from_raw_parts(start, bytes as usize) },
        None => return false,
    };
    let mut header = traced::header(claim, Kind::Eager, envelope, bytes, 0);
    // SAFETY: the caller's promise.
    unsafe { link::send_now(claim, net, link, &mut header, data) }
}

/// Lines up a message with its data, whose cost was taken from the window. With an `outbound` the
/// send is synchronous; on failure that is unmade.
///
/// # Safety
/// The buffer's data is readable; link and `outbound` are the claimed rank's.
unsafe fn send_eagerly(
    claim: &mut Claim<'_>,
    mut link: NonNull<Link>,
    buffer: Buffer<'_>,
    envelope: Envelope,
    outbound: *mut Outbound,
) -> Result<(), EngineError> {
    let bytes = buffer.bytes();
    // SAFETY: the caller's promise.
    let name = unsafe { outbound.as_ref() }.map(|outbound| outbound.name);
    let mut header = traced::header(claim, Kind::Eager, envelope, bytes, name.unwrap_or(0));
    if name.is_some() {
        header.flags = SYNCHRONOUS;
    }
    // SAFETY: the caller's promise; the packet has room for all bytes.
    unsafe {
        match Outgoing::with_room(claim, header, bytes as usize) {
            Ok((packet, room)) => {
                datatype::pack(buffer, 0, room, bytes);
                line_up(claim, link, packet);
                Ok(())
            }
            Err(error) => {
                link.as_mut().give_window(link::cost(bytes));
                if let Some(outbound) = NonNull::new(outbound) {
                    Outbound::unmake(outbound, claim);
                }
                Err(error)
            }
        }
    }
}

/// Lines up an offer; on failure the send is unmade.
///
/// # Safety
/// Link and `outbound` are the claimed rank's; the data stays readable until the send is over.
unsafe fn offer(
    claim: &mut Claim<'_>,
    net: &Net,
    link: NonNull<Link>,
    outbound: *mut Outbound,
    envelope: Envelope,
    mode: SendMode,
) -> Result<(), EngineError> {
    // SAFETY: the caller's promise.
    unsafe {
        let (endpoint, caller) = (claim.rank().id(), claim.caller());
        let (data, bytes) = ((*outbound).data, (*outbound).bytes);
        let mut header = traced::header(claim, Kind::Offer, envelope, bytes, (*outbound).name);
        if mode == SendMode::Synchronous {
            header.flags = SYNCHRONOUS;
        }
        if !data.is_null() && net.limits.transfer > 0 && bytes > net.eager_max {
            // Memory that cannot be exposed travels in packets.
            let exposed = net
                .transport
                .expose(endpoint, caller, data.cast_mut(), bytes as usize);
            if let Ok(region) = exposed {
                header.flags |= READABLE;
                header.region = region;
                (*outbound).region = Some(region);
            }
        }
        match Outgoing::with_room(claim, header, 0) {
            Ok((packet, _)) => {
                line_up(claim, link, packet);
                (*outbound).mark = hooks::under_way(claim);
                Ok(())
            }
            Err(error) => {
                if let Some(region) = (*outbound).region {
                    net.transport.withdraw(endpoint, caller, region);
                }
                Outbound::unmake(NonNull::new_unchecked(outbound), claim);
                Err(error)
            }
        }
    }
}

impl Outbound {
    /// A send that is offered.
    fn make(
        claim: &mut Claim<'_>,
        request: *mut Operation,
        peer: Peer,
        data: *const u8,
        bytes: u64,
    ) -> Option<*mut Self> {
        let block = claim.alloc(size_of::<Self>())?.cast::<Self>();
        let Ok(name) = names::name(claim, What::Send, peer, block) else {
            // SAFETY: the block is fresh.
            unsafe { claim.free_local(block.cast()) };
            return None;
        };
        let outbound = Self {
            request,
            name,
            peer,
            stage: Stage::Offered,
            is_retracted: false,
            is_cancelled: false,
            region: None,
            data,
            block: null_mut(),
            bytes,
            receive: 0,
            wanted: 0,
            next: 0,
            packets: 0,
            mark: Mark::NONE,
            links: Links::NONE,
        };
        // SAFETY: a fresh block of the right size, in no list.
        unsafe {
            block.write(outbound);
            claim.of::<Remote>().offered.push(block.as_ptr());
        }
        claim.expect_more(TaskKind::Net);
        Some(block.as_ptr())
    }

    /// Forgets a send that was never offered.
    ///
    /// # Safety
    /// It is the claimed rank's, and nobody has heard of it.
    unsafe fn unmake(this: NonNull<Self>, claim: &mut Claim<'_>) {
        // SAFETY: the caller's promise.
        unsafe {
            claim.of::<Remote>().offered.remove(this.as_ptr());
            names::forget(claim, this.as_ref().name);
            claim.free_local(this.cast());
        }
        claim.expect_less(TaskKind::Net);
    }

    /// Moves a send to another stage, and so to another list.
    ///
    /// # Safety
    /// It is the claimed rank's and in the list of its stage.
    unsafe fn enter(this: NonNull<Self>, claim: &mut Claim<'_>, stage: Stage) {
        let state = claim.of::<Remote>();
        // SAFETY: the caller's promise.
        unsafe {
            match (*this.as_ptr()).stage {
                Stage::Offered => state.offered.remove(this.as_ptr()),
                Stage::Streaming => state.streaming.remove(this.as_ptr()),
                Stage::Leaving => state.leaving.remove(this.as_ptr()),
                Stage::Over => state.over.remove(this.as_ptr()),
            }
            (*this.as_ptr()).stage = stage;
            match stage {
                Stage::Offered => state.offered.push(this.as_ptr()),
                Stage::Streaming => state.streaming.push(this.as_ptr()),
                Stage::Leaving => state.leaving.push(this.as_ptr()),
                Stage::Over => state.over.push(this.as_ptr()),
            }
        }
    }

    /// Whether more packets may be lined up.
    fn may_go_on(&self) -> bool {
        self.next < self.wanted && self.packets < STREAM_DEPTH
    }
}

/// The send that a receiver answers.
fn named(claim: &mut Claim<'_>, peer: Peer, header: &Header) -> Option<NonNull<Outbound>> {
    names::find(claim, What::Send, peer, header.id)
}

/// The receiver wants the data in packets. None if there is no such send, or it was answered before.
pub(super) fn cleared(claim: &mut Claim<'_>, peer: Peer, header: &Header) -> Option<()> {
    let mut outbound = named(claim, peer, header)?;
    // SAFETY: a send has its name as long as it lives.
    unsafe {
        let this = outbound.as_mut();
        if this.stage != Stage::Offered || header.bytes > this.bytes {
            return None;
        }
        this.receive = header.receive;
        this.wanted = header.bytes;
        Outbound::enter(outbound, claim, Stage::Streaming);
    }
    Some(())
}

/// The receiver has the message. None as for [`cleared`].
pub(super) fn done(claim: &mut Claim<'_>, peer: Peer, header: &Header) -> Option<()> {
    let outbound = named(claim, peer, header)?;
    // SAFETY: a send has its name as long as it lives.
    unsafe {
        if outbound.as_ref().stage != Stage::Offered {
            return None;
        }
        Outbound::enter(outbound, claim, Stage::Over);
    }
    Some(())
}

/// The receiver's answer to a retraction. None as for [`cleared`].
pub(super) fn retracted(claim: &mut Claim<'_>, peer: Peer, header: &Header) -> Option<()> {
    let mut outbound = named(claim, peer, header)?;
    // SAFETY: a send has its name as long as it lives.
    unsafe {
        let this = outbound.as_mut();
        if !this.is_retracted {
            return None;
        }
        this.is_retracted = false;
        if header.flags & MATCHED == 0 {
            if this.stage != Stage::Offered {
                return None;
            }
            this.is_cancelled = true;
            Outbound::enter(outbound, claim, Stage::Over);
        }
    }
    Some(())
}

/// A data packet of this send has left.
///
/// # Safety
/// It is a send of the claimed rank with packets under way.
pub(super) unsafe fn packet_left(claim: &mut Claim<'_>, outbound: NonNull<Outbound>) {
    // SAFETY: the caller's promise.
    unsafe {
        let this = outbound.as_ptr();
        (*this).packets -= 1;
        if (*this).next == (*this).wanted && (*this).packets == 0 {
            Outbound::enter(outbound, claim, Stage::Over);
        } else if (*this).stage == Stage::Leaving && (*this).may_go_on() {
            Outbound::enter(outbound, claim, Stage::Streaming);
        }
    }
}

/// Lines up data of the messages that receivers want in packets, a few of each at a time. A turn looks at those only of
/// which there is something to line up: a hundred thousand may wait for their packets to leave.
pub(super) fn stream(claim: &mut Claim<'_>, net: &Net) {
    let mut next = claim.of::<Remote>().streaming.first();
    while let Some(outbound) = NonNull::new(next) {
        // SAFETY: elements of the list are valid; the next one is taken first.
        unsafe {
            next = claim.of::<Remote>().streaming.next(next);
            while outbound.as_ref().may_go_on() {
                // Without memory a later turn goes on.
                if line_up_data(claim, net, outbound).is_err() {
                    break;
                }
            }
            if outbound.as_ref().packets > 0 && !outbound.as_ref().may_go_on() {
                Outbound::enter(outbound, claim, Stage::Leaving);
            }
        }
    }
}

/// Lines up the next data packet of a send.
///
/// # Safety
/// It is a send of the claimed rank of which data is wanted.
unsafe fn line_up_data(
    claim: &mut Claim<'_>,
    net: &Net,
    outbound: NonNull<Outbound>,
) -> Result<(), EngineError> {
    let this = outbound.as_ptr();
    // SAFETY: the caller's promise; the data stays until the send is over.
    unsafe {
        let link = link_to(claim, (*this).peer)?;
        let (at, left) = ((*this).next, (*this).wanted - (*this).next);
        let length = left.min((net.limits.packet - Header::BYTES) as u64);
        let mut header = Header::new(Kind::Data, 0);
        header.receive = (*this).receive;
        header.bytes = at;
        let packet = if (*this).data.is_null() {
            let (packet, room) = Outgoing::with_room(claim, header, length as usize)?;
            datatype::pack((*(*this).request).buffer(), at, room, length);
            packet
        } else {
            let data = (*this).data.add(at as usize);
            Outgoing::referring(claim, header, data, length as usize)?
        };
        Outgoing::belongs_to(packet, this.cast());
        (*this).next += length;
        (*this).packets += 1;
        line_up(claim, link, packet);
    }
    Ok(())
}

/// Completes the sends that are over. Returns how many. Calls the transport.
pub(super) fn complete_over(claim: &mut Claim<'_>, net: &Net, caller: LocalRank) -> u32 {
    let mut completed = 0;
    let mut next = claim.of::<Remote>().over.first();
    while let Some(outbound) = NonNull::new(next) {
        let this = outbound.as_ptr();
        // SAFETY: elements of the list are valid; the next one is taken first. A send that is over
        // is not touched by the receiver; its request is completed once and then forgotten.
        unsafe {
            next = claim.of::<Remote>().over.next(this);
            if let Some(region) = (*this).region.take() {
                net.transport.withdraw(claim.rank().id(), caller, region);
            }
            if let Some(block) = NonNull::new(core::mem::replace(&mut (*this).block, null_mut())) {
                Heap::free(block);
            }
            if let Some(request) =
                NonNull::new(core::mem::replace(&mut (*this).request, null_mut()))
            {
                let status = Status {
                    cancelled: (*this).is_cancelled,
                    ..Status::EMPTY
                };
                Operation::complete(request.as_ptr(), status);
                completed += 1;
            }
            // A retraction that crossed the receiver's answer is still to be answered itself.
            if !(*this).is_retracted {
                claim.of::<Remote>().over.remove(this);
                names::forget(claim, outbound.as_ref().name);
                hooks::over(claim, outbound.as_ref().mark);
                claim.free_local(outbound.cast());
                claim.expect_less(TaskKind::Net);
            }
        }
    }
    completed
}

/// Asks the receiver to forget a send (`MPI_Cancel`), unless it has answered already.
pub(crate) fn cancel(claim: &mut Claim<'_>, request: *mut Operation) {
    let offered = &claim.of::<Remote>().offered;
    // SAFETY: elements of the list are valid.
    let found = offered.find(|outbound| unsafe { (*outbound).request == request });
    if found.is_null() {
        return;
    }
    // SAFETY: as above.
    unsafe {
        if !(*found).is_retracted {
            (*found).is_retracted = true;
            let header = Header::new(Kind::Retract, (*found).name);
            link::answer(claim, (*found).peer, header);
        }
    }
    kick(claim);
}
