//! Messages from remote peers.
//!
//! A message that arrives is matched at once: with its data it is delivered or stored, as an offer it is taken
//! or stored.
//!
//! # Offers that wait for room
//! A sender offers a short message when the pair's window is used up ([`cohort_net::link`]), and a program that calls
//! `MPI_Send` for it waits. It may wait for ever, if the receiver has taken what filled the window and goes on to wait
//! for a later message: MPI lets a program hope only for buffers that it attaches (MPI-4.1, 3.5), but programs do. So
//! the receiver asks for the data of such an offer as soon as the messages of that peer that it keeps leave room in a
//! window, in the order in which the offers came. Then sends wait for receives only while there is a window full of
//! messages that nobody has taken. What a rank keeps of one peer stays below two windows: one of messages that came
//! with their data, which the sender counts, and one that this side counts.
//!
//! A synchronous send is over when a receive has taken it, so its data is never asked for early. Nor is that of a long
//! message, which is read into the receiver's buffer.

use super::receive::{self, Inbound};
use super::traced;
use crate::P2p;
use crate::matching::Stored;
use crate::operation::Operation;
use crate::ring::{self, PayloadKind};
use crate::state::unpost_receive;
use cohort_alloc::Heap;
use cohort_base::Peer;
use cohort_core::claim::Claim;
use cohort_core::message::{Envelope, Status};
use cohort_datatype as datatype;
use cohort_fabric::Region;
use cohort_net::link::{self, InWaiting, Link, WINDOW, answer, link_to, owe};
use cohort_net::wire::{Header, Kind, MATCHED, READABLE, SYNCHRONOUS};
use cohort_net::{Net, fail, kick};
use core::mem::size_of;
use core::ptr::{NonNull, null_mut};

/// A message from a remote peer that waits to be delivered: the payload of a stored message.
#[repr(C)]
#[derive(Debug)]
pub struct Arrival {
    /// Of the list of offers that wait for room; first, so that an element of that list is an arrival.
    waiting: InWaiting,
    pub(super) peer: Peer,
    /// Of the packet's header.
    pub(super) flags: u8,
    /// Whether the message took its cost out of the sender's window.
    is_owed: bool,
    /// Of the packet's header.
    message: u32,
    pub(crate) bytes: u64,
    pub(super) id: u64,
    pub(super) region: Region,
    pub(super) data: Data,
}

/// Where a message's data is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Data {
    /// In the packet.
    InPacket(*const u8),
    /// In a block of the heap that goes with the arrival; null for no bytes.
    Stored(*mut u8),
    /// With the sender, until a receive takes the message.
    Offered,
    /// With the sender, until there is room for it or a receive takes the message; in the link's list.
    Waiting,
    /// On its way into a block.
    Coming(NonNull<Inbound>),
}

impl Arrival {
    /// The arrival that a stored message is.
    ///
    /// # Safety
    /// `stored` is valid, and its kind says so.
    pub(crate) unsafe fn of(stored: *mut Stored) -> *mut Self {
        // SAFETY: the caller's promise.
        unsafe { Stored::payload(stored).cast() }
    }

    /// Whether its data may be asked for before a receive takes it.
    fn may_come_early(&self, net: &Net) -> bool {
        self.bytes <= net.eager_max && self.flags & (SYNCHRONOUS | READABLE) == 0
    }
}

/// A message or an offer has arrived. Returns the bytes that were copied into a user's buffer.
pub(super) fn arrive(
    claim: &mut Claim<'_>,
    peer: Peer,
    packet: &Header,
    data: Option<&[u8]>,
) -> u64 {
    let envelope = packet.envelope();
    let mut arrival = Arrival {
        waiting: InWaiting::NONE,
        peer,
        flags: packet.flags,
        is_owed: data.is_some(),
        message: packet.message,
        bytes: packet.bytes,
        id: packet.id,
        region: packet.region,
        data: data.map_or(Data::Offered, |data| Data::InPacket(data.as_ptr())),
    };
    let request = claim.of::<P2p>().posted.find(&envelope);
    if !request.is_null() {
        // SAFETY: a posted request is valid and pending, and ours once it is out of the queue.
        return unsafe {
            unpost_receive(claim, request);
            deliver(claim, &mut arrival, envelope, request)
        };
    }
    if store(claim, envelope, arrival).is_none() {
        fail::no_memory(claim.rank(), peer);
    }
    0
}

/// Stores an arrival that no posted receive takes, with a copy of its data.
fn store(claim: &mut Claim<'_>, envelope: Envelope, mut arrival: Arrival) -> Option<()> {
    let mut link = link_to(claim, arrival.peer).ok()?;
    if let Data::InPacket(data) = arrival.data {
        let bytes = arrival.bytes as usize;
        let mut block = null_mut();
        if bytes > 0 {
            block = claim.alloc(bytes)?.as_ptr();
            // SAFETY: the data is the packet's, of this length; the block is fresh.
            unsafe { block.copy_from_nonoverlapping(data, bytes) };
        }
        arrival.data = Data::Stored(block);
        // SAFETY: links belong to the claim's holder.
        unsafe { link.as_mut() }.kept += link::cost(arrival.bytes);
    }
    let stored = Stored::make(claim, header(envelope))?;
    let heap = claim.heap();
    let peer = arrival.peer;
    let waits = matches!(arrival.data, Data::Offered)
        && Net::of(claim.rank().node()).is_some_and(|net| arrival.may_come_early(net));
    // SAFETY: the block has room for the payload, and is in no queue; links belong to the claim's holder.
    unsafe {
        let place = Arrival::of(stored.as_ptr());
        place.write(arrival);
        claim.of::<P2p>().unexpected.insert(stored.as_ptr(), heap);
        if waits {
            (*place).data = Data::Waiting;
            link.as_mut().waiting.push(place.cast());
            ask_early(claim, peer);
        }
    }
    Some(())
}

/// The header of a stored arrival.
pub(crate) fn header(envelope: Envelope) -> ring::Header {
    ring::Header::new(envelope, PayloadKind::Arrival, size_of::<Arrival>())
}

/// Asks for the data of the offers that wait, the oldest first, as far as there is room for it.
fn ask_early(claim: &mut Claim<'_>, peer: Peer) {
    let Ok(mut link) = link_to(claim, peer) else {
        return;
    };
    // SAFETY: links belong to the claim's holder; an element of the list is the beginning of an arrival that stays
    // where it is while it is there.
    unsafe {
        while let Some(first) = NonNull::new(link.as_ref().waiting.first()) {
            let mut arrival = first.cast::<Arrival>();
            let cost = link::cost(arrival.as_ref().bytes);
            if link.as_ref().kept + cost > WINDOW {
                return;
            }
            if arrival.as_ref().bytes == 0 {
                let id = arrival.as_ref().id;
                answer(claim, peer, Header::new(Kind::Done, id));
                arrival.as_mut().data = Data::Stored(null_mut());
            } else if receive::fetch_early(claim, arrival).is_none() {
                // Without memory a later message that is taken tries again.
                return;
            }
            link.as_mut().waiting.remove(first.as_ptr());
            link.as_mut().kept += cost;
        }
    }
}

/// A message of `bytes` bytes that was kept for a peer is gone: offers of that peer may find room.
pub(super) fn release(claim: &mut Claim<'_>, peer: Peer, bytes: u64) {
    if let Ok(mut link) = link_to(claim, peer) {
        // SAFETY: links belong to the claim's holder.
        let link: &mut Link = unsafe { link.as_mut() };
        link.kept -= link::cost(bytes);
        if !link.waiting.first().is_null() {
            ask_early(claim, peer);
        }
    }
}

/// Delivers a matched arrival to a receive that is in no queue, or begins to. Returns the bytes that
/// were copied already.
///
/// # Safety
/// `request` is a pending receive of the claimed rank; the arrival is out of matching, was not delivered before, and
/// lies where it was stored, if it was.
#[cold]
pub(crate) unsafe fn deliver(
    claim: &mut Claim<'_>,
    arrival: &mut Arrival,
    envelope: Envelope,
    request: *mut Operation,
) -> u64 {
    if arrival.message != 0 {
        let (bytes, number) = (arrival.bytes, arrival.message);
        traced::matched(claim, arrival.peer, envelope, bytes, number);
    }
    // SAFETY: the caller's promise.
    let capacity = unsafe { (*request).buffer() }.bytes();
    let status = Status::delivered(envelope, arrival.bytes, capacity);
    let wanted = status.bytes as u64;
    // SAFETY: the caller's promise; the data has `arrival.bytes` bytes.
    let copied = unsafe {
        match arrival.data {
            Data::InPacket(data) => {
                datatype::unpack((*request).buffer(), 0, data, wanted);
                finish(claim, arrival, request, status)
            }
            Data::Stored(block) => {
                datatype::unpack((*request).buffer(), 0, block, wanted);
                finish(claim, arrival, request, status)
            }
            Data::Coming(inbound) => {
                receive::hand_over(inbound, request, status);
                0
            }
            Data::Offered | Data::Waiting => {
                withdraw(claim, arrival);
                if wanted == 0 {
                    answer(claim, arrival.peer, Header::new(Kind::Done, arrival.id));
                    Operation::complete(request, status);
                } else {
                    receive::fetch(claim, arrival, request, status);
                }
                0
            }
        }
    };
    kick(claim);
    copied
}

/// Ends an arrival whose data is in its receive's buffer. Returns how much.
///
/// # Safety
/// As for [`deliver`].
unsafe fn finish(
    claim: &mut Claim<'_>,
    arrival: &Arrival,
    request: *mut Operation,
    status: Status,
) -> u64 {
    drop_data(claim, arrival);
    if arrival.flags & SYNCHRONOUS != 0 {
        answer(claim, arrival.peer, Header::new(Kind::Done, arrival.id));
    }
    // SAFETY: the caller's promise.
    unsafe { Operation::complete(request, status) };
    status.bytes as u64
}

/// Takes an arrival out of the list of offers that wait for room.
///
/// # Safety
/// It lies where it was stored, if it was.
unsafe fn withdraw(claim: &mut Claim<'_>, arrival: &mut Arrival) {
    if let Data::Waiting = arrival.data
        && let Ok(mut link) = link_to(claim, arrival.peer)
    {
        arrival.data = Data::Offered;
        // SAFETY: the caller's promise; links belong to the claim's holder.
        unsafe { link.as_mut().waiting.remove(&raw mut arrival.waiting) };
    }
}

/// Frees the data that came with an arrival and notes that its cost is to be given back.
fn drop_data(claim: &mut Claim<'_>, arrival: &Arrival) {
    if arrival.is_owed {
        owe(claim, arrival.peer, arrival.bytes);
    }
    if let Data::Stored(block) = arrival.data {
        if let Some(block) = NonNull::new(block) {
            // SAFETY: it was made for this arrival, which is over.
            unsafe { Heap::free(block) };
        }
        release(claim, arrival.peer, arrival.bytes);
    }
}

/// A sender wants a message back: forgets it unless it is matched or its data was asked for, and says which.
pub(super) fn retract(claim: &mut Claim<'_>, peer: Peer, id: u64) {
    let found = claim.of::<P2p>().unexpected.find_where(|stored| {
        // SAFETY: elements of the queue are valid; the kind names the payload's type.
        unsafe {
            (*stored).header.kind == PayloadKind::Arrival && {
                let arrival = &*Arrival::of(stored);
                let is_early =
                    !arrival.is_owed && matches!(arrival.data, Data::Coming(_) | Data::Stored(_));
                arrival.peer == peer && arrival.id == id && !is_early
            }
        }
    });
    let mut reply = Header::new(Kind::Retracted, id);
    match NonNull::new(found) {
        // SAFETY: as above; it is ours once it is out of the queue.
        Some(stored) => unsafe {
            claim.of::<P2p>().unexpected.remove(found);
            let arrival = &mut *Arrival::of(found);
            withdraw(claim, arrival);
            drop_data(claim, arrival);
            claim.free_local(stored.cast());
        },
        None => reply.flags = MATCHED,
    }
    answer(claim, peer, reply);
}
