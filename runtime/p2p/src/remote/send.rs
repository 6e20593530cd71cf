//! Sends to remote peers.
//!
//! A short message travels with its data and is complete at once. Others are *offered*: the sender
//! keeps an [`Outbound`] until the receiver has matched the RTS and either read the data out of
//! the sender's memory (one run of bytes, and a network that can), or asked for it in packets.
//!
//! What is over is completed after the poll that found it, because the region must be withdrawn before the
//! program may have its buffer back, and handlers of events must not call the transport.

use super::outbound::{Outbound, Stage};
use super::rts::rts;
use super::{Remote, traced};
use crate::failing::{failed, may_send};
use crate::matching::Want;
use crate::operation::{self, Operation};
use crate::packed::PackedBlock;
use cohort_alloc::Heap;
use cohort_base::{LocalRank, Peer};
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::message::{Envelope, SendMode, Status};
use cohort_core::record::RecordRef;
use cohort_core::request::RequestRef;
use cohort_core::subsystem::hooks;
use cohort_datatype::{self as datatype, Buffer};
use cohort_net::link::{self, Link, Unsent, line_up, link_to};
use cohort_net::names::{self, Name};
use cohort_net::wire::{Header, MATCHED, PacketKind, SYNCHRONOUS};
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
    let link = link_to(claim, to)?;
    traced::sent(claim, to, envelope, buffer.bytes());
    let mut protocol = Protocol::of(net, &link, buffer.bytes(), mode);
    if protocol == Protocol::Rendezvous && link.is_gated() && buffer.bytes() <= net.eager_max {
        may_send(claim, to, &envelope)?;
        protocol = Protocol::past_gate(net, &link, buffer.bytes(), mode);
    }
    if protocol == Protocol::Eager {
        if !send_directly(claim, link, buffer, envelope) {
            send_eagerly(claim, link, buffer, envelope, 0)?;
            kick(claim);
        }
        return Ok(claim.rank().sent());
    }
    let give_up = || {
        if protocol == Protocol::EagerAnswered {
            link.give_window(link::cost(buffer.bytes()));
        }
        EngineError::OutOfMemory
    };
    let request = Operation::make(claim, &operation::OperationKind::Remote, buffer, Want::of_send(to, &envelope))
        .ok_or_else(give_up)?;
    let data = buffer.contiguous().unwrap_or(null_mut());
    // SAFETY: the request is fresh; the buffer is there until it is complete. Nobody else knows what is made here.
    unsafe {
        let sent = match Outbound::make(claim, Some(request), to, data, buffer.bytes()) {
            Some(outbound) if protocol == Protocol::Rendezvous => rts(claim, net, link, outbound, envelope, mode),
            Some(outbound) => send_eagerly(claim, link, buffer, envelope, outbound.name.get())
                .inspect_err(|_| Outbound::unmake(outbound, claim)),
            None => Err(give_up()),
        };
        if let Err(error) = sent {
            Operation::complete_quietly(request, Status::EMPTY);
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
    fn of(net: &Net, link: &Link, bytes: u64, mode: SendMode) -> Self {
        Self::chosen(bytes <= net.eager_max && link.take_window(bytes), mode)
    }

    /// The same after a failure, of a message that may leave.
    #[cold]
    fn past_gate(net: &Net, link: &Link, bytes: u64, mode: SendMode) -> Self {
        Self::chosen(bytes <= net.eager_max && link.take_window_past_gate(bytes), mode)
    }

    #[inline(always)]
    fn chosen(has_room: bool, mode: SendMode) -> Self {
        match (has_room, mode) {
            (false, _) => Self::Rendezvous,
            (true, SendMode::Synchronous) => Self::EagerAnswered,
            (true, _) => Self::Eager,
        }
    }
}

/// Sends a block of packed bytes; the way of [`crate::isend_owned`] to a remote peer.
#[cold]
pub(crate) fn isend_owned(
    claim: &mut Claim<'_>,
    net: &Net,
    block: PackedBlock,
    to: Peer,
    envelope: Envelope,
) -> Result<(), EngineError> {
    let sent = send_block(claim, net, block, to, envelope);
    kick(claim);
    sent
}

fn send_block(
    claim: &mut Claim<'_>,
    net: &Net,
    block: PackedBlock,
    to: Peer,
    envelope: Envelope,
) -> Result<(), EngineError> {
    let link = link_to(claim, to)?;
    let bytes = block.bytes();
    traced::sent(claim, to, envelope, bytes);
    // SAFETY: the block goes with the packet, or with the send that is made here, of which nobody else knows.
    unsafe {
        let mut protocol = Protocol::of(net, &link, bytes, SendMode::Standard);
        if protocol == Protocol::Rendezvous && link.is_gated() && bytes <= net.eager_max {
            may_send(claim, to, &envelope)?;
            protocol = Protocol::past_gate(net, &link, bytes, SendMode::Standard);
        }
        if protocol == Protocol::Eager {
            let header = traced::header(claim, PacketKind::Eager, envelope, bytes, 0);
            let packet = Unsent::referring(claim, header, block.data(), bytes as usize)
                .inspect_err(|_| link.give_window(link::cost(bytes)))?;
            packet.owns(block.into_raw());
            line_up(claim, link, packet);
            return Ok(());
        }
        let outbound = Outbound::make(claim, None, to, block.data(), bytes).ok_or(EngineError::OutOfMemory)?;
        rts(claim, net, link, outbound, envelope, SendMode::Standard)?;
        outbound.block.set(block.into_raw().as_ptr());
    }
    Ok(())
}

/// Sends a message with its data, whose cost was taken from the window of a link of the claimed rank, out of the
/// buffer. False if that has to be copied.
fn send_directly(claim: &mut Claim<'_>, link: RecordRef<Link>, buffer: Buffer<'_>, envelope: Envelope) -> bool {
    let bytes = buffer.bytes();
    let data: &[u8] = match buffer.contiguous() {
        // The address of nothing may be any.
        _ if bytes == 0 => &[],
        // SAFETY: a buffer's data is there, in one run.
        Some(start) => unsafe { core::slice::from_raw_parts(start, bytes as usize) },
        None => return false,
    };
    let mut header = traced::header(claim, PacketKind::Eager, envelope, bytes, 0);
    link::send_now(claim, link, &mut header, data)
}

/// Lines up a message with its data, whose cost was taken from the window of a link of the claimed rank. With the name
/// of a send that is synchronous; 0 is none.
fn send_eagerly(
    claim: &mut Claim<'_>,
    link: RecordRef<Link>,
    buffer: Buffer<'_>,
    envelope: Envelope,
    name: Name,
) -> Result<(), EngineError> {
    let bytes = buffer.bytes();
    let mut header = traced::header(claim, PacketKind::Eager, envelope, bytes, name);
    if name != 0 {
        header.flags = SYNCHRONOUS;
    }
    let (packet, room) =
        Unsent::with_room(claim, header, bytes as usize).inspect_err(|_| link.give_window(link::cost(bytes)))?;
    // SAFETY: the packet has room for all bytes.
    unsafe { datatype::pack(buffer, 0, room, bytes) };
    line_up(claim, link, packet);
    Ok(())
}

/// The send that a receiver answers.
fn named(claim: &mut Claim<'_>, peer: Peer, header: &Header) -> Option<RecordRef<Outbound>> {
    names::find(claim, peer, header.id)
}

/// The receiver wants the data in packets. None if there is no such send, or it was answered before.
pub(super) fn cleared(claim: &mut Claim<'_>, peer: Peer, header: &Header) -> Option<()> {
    let outbound = named(claim, peer, header)?;
    if outbound.stage.get() != Stage::Offered || header.bytes > outbound.bytes {
        return None;
    }
    outbound.receive.set(header.receive);
    outbound.wanted.set(header.bytes);
    Outbound::enter(outbound, claim, Stage::Streaming);
    Some(())
}

/// The receiver has the message. None as for [`cleared`].
pub(super) fn done(claim: &mut Claim<'_>, peer: Peer, header: &Header) -> Option<()> {
    let outbound = named(claim, peer, header)?;
    if outbound.stage.get() != Stage::Offered {
        return None;
    }
    outbound.error.set(None);
    Outbound::enter(outbound, claim, Stage::Over);
    Some(())
}

/// The receiver's answer to a retraction. None as for [`cleared`].
pub(super) fn retracted(claim: &mut Claim<'_>, peer: Peer, header: &Header) -> Option<()> {
    let outbound = named(claim, peer, header)?;
    if !outbound.is_retracted.replace(false) {
        return None;
    }
    if header.flags & MATCHED == 0 {
        if outbound.stage.get() != Stage::Offered {
            return None;
        }
        outbound.is_cancelled.set(outbound.error.get().is_none());
        Outbound::enter(outbound, claim, Stage::Over);
    }
    Some(())
}

/// A data packet of this send, which is the claimed rank's, has left.
pub(super) fn packet_left(claim: &mut Claim<'_>, outbound: RecordRef<Outbound>) {
    outbound.packets.set(outbound.packets.get() - 1);
    if outbound.next.get() == outbound.wanted.get() && outbound.packets.get() == 0 {
        Outbound::enter(outbound, claim, Stage::Over);
    } else if outbound.stage.get() == Stage::Leaving && outbound.may_go_on() {
        Outbound::enter(outbound, claim, Stage::Streaming);
    }
}

/// Lines up data of the messages that receivers want in packets, a few of each at a time. A turn looks at those only of
/// which there is something to line up: a hundred thousand may wait for their packets to leave.
pub(super) fn stream(claim: &mut Claim<'_>, net: &Net) {
    let mut next = claim.of::<Remote>().streaming.first();
    while let Some(outbound) = next {
        next = claim.of::<Remote>().streaming.next(outbound);
        while outbound.may_go_on() {
            // Without memory a later turn goes on.
            if line_up_data(claim, net, outbound).is_err() {
                break;
            }
        }
        if outbound.packets.get() > 0 && !outbound.may_go_on() {
            Outbound::enter(outbound, claim, Stage::Leaving);
        }
    }
}

/// Lines up the next data packet of a send of the claimed rank of which data is wanted.
fn line_up_data(claim: &mut Claim<'_>, net: &Net, outbound: RecordRef<Outbound>) -> Result<(), EngineError> {
    let link = link_to(claim, outbound.peer)?;
    let (at, left) = (outbound.next.get(), outbound.wanted.get() - outbound.next.get());
    let length = left.min(net.piece);
    let mut header = Header::new(PacketKind::Data, 0);
    header.receive = outbound.receive.get();
    header.bytes = at;
    // SAFETY: by `Outbound::make`, the data stays until the send is over, which it is not before its packets have left;
    // the packet has room for so much of it.
    let packet = unsafe {
        let packet = match outbound.request.get().filter(|_| outbound.data.is_null()) {
            Some(request) => {
                let (packet, room) = Unsent::with_room(claim, header, length as usize)?;
                datatype::pack(request.buffer(), at, room, length);
                packet
            }
            None => Unsent::referring(claim, header, outbound.data.add(at as usize), length as usize)?,
        };
        packet.belongs_to(outbound.as_ptr().cast());
        packet
    };
    outbound.next.set(at + length);
    outbound.packets.set(outbound.packets.get() + 1);
    line_up(claim, link, packet);
    Ok(())
}

/// Completes the sends that are over. Returns how many. Calls the transport.
pub(super) fn complete_over(claim: &mut Claim<'_>, net: &Net, caller: LocalRank) -> u32 {
    let mut completed = 0;
    let mut next = claim.of::<Remote>().over.first();
    while let Some(outbound) = next {
        next = claim.of::<Remote>().over.next(outbound);
        if let Some(region) = outbound.region.take() {
            net.transport.withdraw(claim.rank().id(), caller, region);
        }
        // SAFETY: a send that is over is not touched by the receiver; its request is completed once and then forgotten,
        // and so is its block.
        unsafe {
            if let Some(block) = NonNull::new(outbound.block.replace(null_mut())) {
                Heap::free(block);
            }
            if let Some(request) = outbound.request.take() {
                let status = match outbound.error.get() {
                    Some(error) => failed(error),
                    None => Status { cancelled: outbound.is_cancelled.get(), ..Status::EMPTY },
                };
                Operation::complete(request, status);
                completed += 1;
            }
        }
        // A retraction that crossed the receiver's answer is still to be answered itself.
        if !outbound.is_retracted.get() {
            claim.of::<Remote>().over.remove(outbound);
            names::forget(claim, outbound.name.get());
            hooks::over(claim, outbound.mark.get());
            // SAFETY: it has no name any more, and is in no list.
            unsafe { outbound.free(claim) };
            claim.expect_less(TaskKind::Net);
        }
    }
    completed
}
