//! Sends to remote peers.
//!
//! A short message travels with its data and is complete at once. Others are *offered*: the sender
//! keeps an [`Outbound`] until the receiver has matched the offer and either read the data out of
//! the sender's memory (one run of bytes, and a network that can), or asked for it in packets.
//!
//! What is over is completed after the poll that found it, because the region must be withdrawn before the
//! program may have its buffer back, and handlers of events must not call the transport.

use super::offers::offer;
use super::outbound::{Outbound, Stage};
use super::{Remote, traced};
use crate::matching::Want;
use crate::operation::{self, Operation};
use cohort_alloc::Heap;
use cohort_base::{LocalRank, Peer};
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::message::{Envelope, SendMode, Status};
use cohort_core::request::RequestRef;
use cohort_core::subsystem::hooks;
use cohort_datatype::{self as datatype, Buffer};
use cohort_net::link::{self, Link, Outgoing, line_up, link_to};
use cohort_net::names::{self, What};
use cohort_net::wire::{Header, Kind, MATCHED, SYNCHRONOUS};
use cohort_net::{Net, kick};
use cohort_steal::TaskKind;
use core::ptr::{NonNull, null_mut};

/// Starts a send; the way of [`crate::isend`] to a remote peer.
#[cold]
pub(crate) fn isend(
    claim: &mut Claim<'_>,
    net: &Net,
    buffer: Buffer<'_>,
    to: Peer,
    envelope: Envelope,
    mode: SendMode,
) -> Result<RequestRef, EngineError> {
    let mut link = link_to(claim, to)?;
    traced::sent(claim, to, envelope, buffer.bytes());
    // SAFETY: the link is the claimed rank's, and so is what is made here; nobody has heard of the send.
    unsafe {
        let protocol = Protocol::of(net, link.as_mut(), buffer.bytes(), mode);
        if protocol == Protocol::Eager {
            if !send_directly(claim, net, link, buffer, envelope) {
                send_eagerly(claim, link, buffer, envelope, null_mut())?;
                kick(claim);
            }
            return Ok(claim.rank().sent());
        }
        let give_up = || {
            if protocol == Protocol::EagerAnswered {
                (*link.as_ptr()).give_window(link::cost(buffer.bytes()));
            }
            EngineError::OutOfMemory
        };
        let request = Operation::make(claim, &operation::Kind::Remote, buffer, Want::of_send(to, &envelope))
            .ok_or_else(give_up)?;
        let data = buffer.contiguous().unwrap_or(null_mut());
        let sent = match Outbound::make(claim, request.as_ptr(), to, data, buffer.bytes()) {
            Some(outbound) if protocol == Protocol::Rendezvous => offer(claim, net, link, outbound, envelope, mode),
            Some(outbound) => send_eagerly(claim, link, buffer, envelope, outbound),
            None => Err(give_up()),
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

/// How a message travels between nodes, chosen once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    /// With its envelope in a packet: the send is over at once. Its cost was taken from the peer's window.
    Eager,
    /// The same for a synchronous send, which ends with the receiver's answer.
    EagerAnswered,
    /// It is offered. The receiver reads the data where it is, if that is one run and the network can; else it asks for
    /// it in packets.
    Rendezvous,
}

impl Protocol {
    /// That of a message to the peer of a link.
    fn of(net: &Net, link: &mut Link, bytes: u64, mode: SendMode) -> Self {
        match (bytes <= net.eager_max && link.take_window(bytes), mode) {
            (false, _) => Self::Rendezvous,
            (true, SendMode::Synchronous) => Self::EagerAnswered,
            (true, _) => Self::Eager,
        }
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
        if Protocol::of(net, link.as_mut(), bytes, SendMode::Standard) == Protocol::Eager {
            let header = traced::header(claim, Kind::Eager, envelope, bytes, 0);
            let packet = Outgoing::referring(claim, header, block.as_ptr(), bytes as usize)
                .inspect_err(|_| link.as_mut().give_window(link::cost(bytes)))?;
            Outgoing::owns(packet, block);
            line_up(claim, link, packet);
            return Ok(());
        }
        let outbound = Outbound::make(claim, null_mut(), to, block.as_ptr(), bytes).ok_or(EngineError::OutOfMemory)?;
        offer(claim, net, link, outbound, envelope, SendMode::Standard)?;
        (*outbound).block = block.as_ptr();
    }
    Ok(())
}

/// Sends a message with its data, whose cost was taken from the window, out of the buffer. False if that has to be
/// copied.
///
/// # Safety
/// The link is the claimed rank's.
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
/// Link and `outbound` are the claimed rank's.
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
unsafe fn line_up_data(claim: &mut Claim<'_>, net: &Net, outbound: NonNull<Outbound>) -> Result<(), EngineError> {
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
            if let Some(request) = NonNull::new(core::mem::replace(&mut (*this).request, null_mut())) {
                let status = Status { cancelled: (*this).is_cancelled, ..Status::EMPTY };
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
