//! Messages from remote peers: a message that arrives is matched at once. With its data it is delivered or stored, as
//! an RTS it is taken or stored.

use super::arrival::{Arrival, Data, header};
use super::{early, receive, traced};
use crate::P2p;
use crate::matching::Stored;
use crate::operation::Operation;
use crate::state::unpost_receive;
use cohort_alloc::Heap;
use cohort_base::Peer;
use cohort_core::claim::Claim;
use cohort_core::message::{Envelope, Status};
use cohort_core::record::RecordRef;
use cohort_datatype as datatype;
use cohort_fabric::Place;
use cohort_net::link::{self, InWaiting, answer, link_to, owe};
use cohort_net::wire::{Header, MATCHED, PacketKind, SYNCHRONOUS};
use cohort_net::{Net, fail, kick};
use core::cell::Cell;
use core::ptr::{NonNull, null_mut};

/// A message or an RTS has arrived. Returns the bytes that were copied into a user's buffer.
pub(super) fn arrive(claim: &mut Claim<'_>, peer: Peer, packet: &Header, data: Option<&[u8]>) -> u64 {
    let envelope = packet.envelope();
    let arrival = arrival_of(peer, packet, data.map_or(Data::Offered, |data| Data::InPacket(data.as_ptr())));
    let request = claim.of::<P2p>().posted.find(&envelope);
    if let Some(request) = request {
        unpost_receive(claim, request);
        // SAFETY: a posted request is pending, and ours once it is out of the queue; the data is that of the packet.
        return unsafe { deliver(claim, &arrival, envelope, request) };
    }
    if store(claim, envelope, arrival).is_none() {
        fail::no_memory(claim.rank(), peer);
    }
    0
}

fn arrival_of(peer: Peer, packet: &Header, data: Data) -> Arrival {
    Arrival {
        waiting: InWaiting::none(),
        peer,
        flags: packet.flags,
        is_owed: matches!(data, Data::InPacket(_)),
        message: packet.message,
        bytes: packet.bytes,
        id: packet.id,
        region: packet.region,
        data: Cell::new(data),
    }
}

/// The beginning of a message with its data has arrived: the rest goes straight into the buffer of a posted receive, if
/// that is one run of bytes and has room. `None` if not; nothing was done then.
pub(super) fn begin(claim: &mut Claim<'_>, peer: Peer, packet: &Header, body: &[u8]) -> Option<Place> {
    let envelope = packet.envelope();
    let request = claim.of::<P2p>().posted.find(&envelope)?;
    let (capacity, into) = (request.buffer().bytes(), request.buffer().contiguous()?);
    if capacity < packet.bytes {
        return None;
    }
    let arrival = arrival_of(peer, packet, Data::InPacket(body.as_ptr()));
    let status = Status::delivered(envelope, arrival.bytes, capacity);
    // SAFETY: a posted request is pending, and was made for this message; that its buffer has room was seen.
    let place = unsafe { receive::begin(claim, &arrival, (request, into), status, body) }?;
    unpost_receive(claim, request);
    if arrival.message != 0 {
        traced::matched(claim, peer, envelope, arrival.bytes, arrival.message);
    }
    Some(place)
}

/// Stores an arrival that no posted receive takes, with a copy of its data.
fn store(claim: &mut Claim<'_>, envelope: Envelope, arrival: Arrival) -> Option<()> {
    let link = link_to(claim, arrival.peer).ok()?;
    if let Data::InPacket(data) = arrival.data.get() {
        let bytes = arrival.bytes as usize;
        let mut block = null_mut();
        if bytes > 0 {
            block = claim.alloc(bytes)?.as_ptr();
            // SAFETY: the data is the packet's, of this length; the block is fresh.
            unsafe { block.copy_from_nonoverlapping(data, bytes) };
        }
        arrival.data.set(Data::Stored(block));
        link.kept.set(link.kept.get() + link::cost(arrival.bytes));
    }
    let stored = Stored::make(claim, header(envelope))?;
    let heap = claim.heap();
    let peer = arrival.peer;
    let waits = matches!(arrival.data.get(), Data::Offered)
        && Net::of(claim.rank().node()).is_some_and(|net| arrival.may_come_early(net));
    // SAFETY: the header says what the message is, and the block has room for it.
    let place = unsafe {
        let place = Arrival::of(stored);
        place.as_ptr().write(arrival);
        place
    };
    claim.of::<P2p>().unexpected.insert(stored, heap);
    if waits {
        place.data.set(Data::Waiting);
        link.waiting.push(Arrival::waiting(place));
        early::ask(claim, peer);
    }
    Some(())
}

/// Delivers a matched arrival to a receive that is in no queue, or begins to. Returns the bytes that
/// were copied already.
///
/// # Safety
/// `request` is a pending receive of the claimed rank; the arrival is out of matching, was not delivered before, and
/// lies where it was stored, if it was. Its data has as many bytes as it says.
#[cold]
pub(crate) unsafe fn deliver(
    claim: &mut Claim<'_>,
    arrival: &Arrival,
    envelope: Envelope,
    request: RecordRef<Operation>,
) -> u64 {
    if arrival.message != 0 {
        let (bytes, number) = (arrival.bytes, arrival.message);
        traced::matched(claim, arrival.peer, envelope, bytes, number);
    }
    let capacity = request.buffer().bytes();
    let status = Status::delivered(envelope, arrival.bytes, capacity);
    let wanted = status.bytes as u64;
    // SAFETY: the caller's promise; a receive's buffer has room for what is wanted.
    let copied = unsafe {
        match arrival.data.get() {
            Data::InPacket(data) => {
                datatype::unpack(request.buffer(), 0, data, wanted);
                finish(claim, arrival, request, status)
            }
            Data::Stored(block) => {
                datatype::unpack(request.buffer(), 0, block, wanted);
                finish(claim, arrival, request, status)
            }
            Data::Coming(inbound) => {
                receive::hand_over(inbound, request, status);
                0
            }
            Data::Offered | Data::Waiting => {
                let near = early::near(claim, arrival);
                early::withdraw(claim, arrival);
                if wanted == 0 {
                    answer(claim, arrival.peer, Header::new(PacketKind::Done, arrival.id));
                    Operation::complete(request, status);
                } else {
                    receive::fetch(claim, arrival, request, status);
                }
                early::ask_near(claim, arrival.peer, near);
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
unsafe fn finish(claim: &mut Claim<'_>, arrival: &Arrival, request: RecordRef<Operation>, status: Status) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { drop_data(claim, arrival) };
    if arrival.flags & SYNCHRONOUS != 0 {
        answer(claim, arrival.peer, Header::new(PacketKind::Done, arrival.id));
    }
    // SAFETY: the caller's promise.
    unsafe { Operation::complete(request, status) };
    status.bytes as u64
}

/// Frees the data that came with an arrival and notes that its cost is to be given back.
///
/// # Safety
/// It is over, and this comes once.
unsafe fn drop_data(claim: &mut Claim<'_>, arrival: &Arrival) {
    if arrival.is_owed {
        owe(claim, arrival.peer, arrival.bytes);
    }
    if let Data::Stored(block) = arrival.data.get() {
        if let Some(block) = NonNull::new(block) {
            // SAFETY: it was made for this arrival; the caller's promise.
            unsafe { Heap::free(block) };
        }
        early::release(claim, arrival.peer, arrival.bytes);
    }
}

/// A sender wants a message back: forgets it unless it is matched or its data was asked for, and says which.
pub(super) fn retract(claim: &mut Claim<'_>, peer: Peer, id: u64) {
    let found = claim.of::<P2p>().unexpected.find_where(|stored| {
        let Some(arrival) = Arrival::in_message(stored) else {
            return false;
        };
        let is_early = !arrival.is_owed && matches!(arrival.data.get(), Data::Coming(_) | Data::Stored(_));
        arrival.peer == peer && arrival.id == id && !is_early
    });
    let mut reply = Header::new(PacketKind::Retracted, id);
    match found {
        Some(stored) => {
            claim.of::<P2p>().unexpected.remove(stored);
            // SAFETY: it is an arrival, as was seen, and ours once it is out of the queue.
            unsafe {
                let arrival = Arrival::of(stored);
                early::withdraw(claim, &arrival);
                drop_data(claim, &arrival);
                stored.free(claim);
            }
        }
        None => reply.flags = MATCHED,
    }
    answer(claim, peer, reply);
}
