//! Messages from remote peers.
//!
//! A message that arrives is matched at once: with its data it is delivered or stored, as an offer it is taken
//! or stored. The data of a taken offer is read straight into the receiver's buffer (through pieces
//! that are unpacked if that is not one run of bytes), or asked for in packets.

use super::{Remote, traced};
use crate::P2p;
use crate::matching::Stored;
use crate::operation::Operation;
use crate::ring::{self, PayloadKind};
use crate::state::unpost_receive;
use cohort_alloc::Heap;
use cohort_base::{LocalRank, Peer};
use cohort_core::claim::Claim;
use cohort_core::list::{Linked, Links};
use cohort_core::message::{Envelope, Status};
use cohort_core::subsystem::{Mark, hooks};
use cohort_datatype as datatype;
use cohort_fabric::{Direction, Refused, Region, Transfer};
use cohort_net::fail;
use cohort_net::link::{answer, owe};
use cohort_net::names::{self, Name, What};
use cohort_net::wire::{Header, Kind, MATCHED, READABLE, SYNCHRONOUS};
use cohort_net::{Net, READ, kick};
use cohort_steal::TaskKind;
use core::mem::size_of;
use core::ptr::{NonNull, null};

/// Reads of one message that may be under way at a time.
const READS_DEPTH: u32 = 4;

/// Bytes of one read into the receiver's buffer, and of one that is unpacked afterwards.
const READ_BYTES: u64 = 1 << 20;
const PIECE_BYTES: u64 = 64 << 10;

/// [`Links`] of the list of receives.
pub(super) const IN_READING: u8 = 0;

/// A message from a remote peer that waits to be delivered: the payload of a stored message.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    peer: Peer,
    /// Of the packet's header.
    flags: u8,
    /// Whether the data came with the message.
    has_data: bool,
    /// Whether `data` is a block of the heap that goes with this arrival.
    is_stored: bool,
    /// Of the packet's header.
    message: u32,
    pub(crate) bytes: u64,
    id: u64,
    region: Region,
    data: *const u8,
}

/// A receive whose data is on its way.
#[derive(Debug)]
pub(crate) struct Inbound {
    request: *mut Operation,
    status: Status,
    peer: Peer,
    /// By which the sender sends data in packets; 0 if it is read.
    name: Name,
    /// The sender's operation.
    id: Name,
    /// Where the sender's data lies; unused when it comes in packets.
    region: Region,
    wanted: u64,
    /// Bytes that were asked for by reads, and bytes that are in the buffer.
    next: u64,
    done: u64,
    /// Reads under way.
    pieces: u32,
    /// What the policy remembers of it.
    mark: Mark,
    links: Links<Self>,
}

impl Linked<IN_READING> for Inbound {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).links }
    }
}

impl Inbound {
    /// Whether no read is under way though data is to be read.
    pub(super) fn waits_for_room(&self) -> bool {
        self.pieces == 0 && self.next < self.wanted
    }
}

/// One read under way; what is to be unpacked lies behind it.
struct Piece {
    inbound: *mut Inbound,
    offset: u64,
    length: u64,
    is_packed: bool,
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
        peer,
        flags: packet.flags,
        has_data: data.is_some(),
        is_stored: false,
        message: packet.message,
        bytes: packet.bytes,
        id: packet.id,
        region: packet.region,
        data: data.map_or(null(), <[u8]>::as_ptr),
    };
    let request = claim.of::<P2p>().posted.find(&envelope);
    if !request.is_null() {
        // SAFETY: a posted request is valid and pending, and ours once it is out of the queue.
        return unsafe {
            unpost_receive(claim, request);
            deliver(claim, arrival, envelope, request)
        };
    }
    if store(claim, envelope, &mut arrival).is_none() {
        fail::no_memory(claim.rank(), peer);
    }
    0
}

/// Stores an arrival that no posted receive takes, with a copy of its data.
fn store(claim: &mut Claim<'_>, envelope: Envelope, arrival: &mut Arrival) -> Option<()> {
    let bytes = if arrival.has_data {
        arrival.bytes as usize
    } else {
        0
    };
    if bytes > 0 {
        let block = claim.alloc(bytes)?;
        // SAFETY: the data is the packet's, of this length; the block is fresh.
        unsafe { block.as_ptr().copy_from_nonoverlapping(arrival.data, bytes) };
        arrival.data = block.as_ptr();
        arrival.is_stored = true;
    }
    let stored = Stored::make(claim, header(envelope))?;
    let heap = claim.heap();
    // SAFETY: the block has room for the payload, and is in no queue.
    unsafe {
        Stored::payload(stored.as_ptr())
            .cast::<Arrival>()
            .write(*arrival);
        claim.of::<P2p>().unexpected.insert(stored.as_ptr(), heap);
    }
    Some(())
}

/// The header of a stored arrival.
pub(crate) fn header(envelope: Envelope) -> ring::Header {
    ring::Header::new(envelope, PayloadKind::Arrival, size_of::<Arrival>())
}

/// Delivers a matched arrival to a receive that is in no queue, or begins to. Returns the bytes that
/// were copied already.
///
/// # Safety
/// `request` is a pending receive of the claimed rank; the arrival was not delivered before.
#[cold]
pub(crate) unsafe fn deliver(
    claim: &mut Claim<'_>,
    arrival: Arrival,
    envelope: Envelope,
    request: *mut Operation,
) -> u64 {
    if arrival.message != 0 {
        traced::matched(
            claim,
            arrival.peer,
            envelope,
            arrival.bytes,
            arrival.message,
        );
    }
    // SAFETY: the caller's promise.
    let capacity = unsafe { (*request).buffer() }.bytes();
    let status = Status::delivered(envelope, arrival.bytes, capacity);
    let wanted = status.bytes as u64;
    // SAFETY: the caller's promise; the data has `arrival.bytes` bytes.
    let copied = unsafe {
        if arrival.has_data {
            datatype::unpack((*request).buffer(), 0, arrival.data, wanted);
            drop_data(claim, &arrival);
            if arrival.flags & SYNCHRONOUS != 0 {
                answer(claim, arrival.peer, Header::new(Kind::Done, arrival.id));
            }
            Operation::complete(request, status);
            wanted
        } else if wanted == 0 {
            answer(claim, arrival.peer, Header::new(Kind::Done, arrival.id));
            Operation::complete(request, status);
            0
        } else {
            fetch(claim, &arrival, request, status);
            0
        }
    };
    kick(claim);
    copied
}

/// Frees the data that came with an arrival and notes that its cost is to be given back.
fn drop_data(claim: &mut Claim<'_>, arrival: &Arrival) {
    if arrival.is_stored
        && let Some(block) = NonNull::new(arrival.data.cast_mut())
    {
        // SAFETY: `store` made it for this arrival, which is over.
        unsafe { Heap::free(block) };
    }
    if arrival.has_data {
        owe(claim, arrival.peer, arrival.bytes);
    }
}

/// Begins to move the data of a taken offer.
///
/// # Safety
/// `request` is a pending receive of the claimed rank in no queue, with room for the data.
unsafe fn fetch(claim: &mut Claim<'_>, arrival: &Arrival, request: *mut Operation, status: Status) {
    let Some(block) = claim.alloc(size_of::<Inbound>()) else {
        fail::no_memory(claim.rank(), arrival.peer);
    };
    let inbound = block.cast::<Inbound>();
    let wanted = status.bytes as u64;
    // SAFETY: a fresh block of the right size, in no list.
    unsafe {
        inbound.write(Inbound {
            request,
            status,
            peer: arrival.peer,
            name: 0,
            id: arrival.id,
            region: arrival.region,
            wanted,
            next: 0,
            done: 0,
            pieces: 0,
            mark: hooks::under_way(claim),
            links: Links::NONE,
        });
        if arrival.flags & READABLE != 0 {
            claim.of::<Remote>().reading.push(inbound.as_ptr());
        } else {
            let Ok(name) = names::name(claim, What::Receive, arrival.peer, inbound) else {
                fail::no_memory(claim.rank(), arrival.peer);
            };
            (*inbound.as_ptr()).name = name;
            let mut header = Header::new(Kind::Clear, arrival.id);
            header.bytes = wanted;
            header.receive = name;
            answer(claim, arrival.peer, header);
        }
    }
    claim.expect_more(TaskKind::Net);
}

/// Data that was asked for in packets. Returns the bytes copied; none if nobody has asked for these.
pub(super) fn data(claim: &mut Claim<'_>, peer: Peer, header: &Header, body: &[u8]) -> Option<u64> {
    let inbound = names::find::<Inbound>(claim, What::Receive, peer, header.receive)?.as_ptr();
    let length = body.len() as u64;
    // SAFETY: a receive has its name as long as it lives.
    unsafe {
        // Pieces come in their order.
        if header.bytes != (*inbound).done || length > (*inbound).wanted - (*inbound).done {
            return None;
        }
        let buffer = (*(*inbound).request).buffer();
        datatype::unpack(buffer, header.bytes, body.as_ptr(), length);
        (*inbound).done += length;
        if (*inbound).done == (*inbound).wanted {
            complete(claim, inbound);
        }
    }
    Some(length)
}

/// Starts reads for the receives that wait for them, a few of each at a time. Returns how many.
pub(super) fn read_more(claim: &mut Claim<'_>, net: &Net, caller: LocalRank) -> u32 {
    let mut started = 0;
    let mut next = claim.of::<Remote>().reading.first();
    while !next.is_null() {
        let inbound = next;
        // SAFETY: elements of the list are valid.
        unsafe {
            next = claim.of::<Remote>().reading.next(inbound);
            for _ in (*inbound).pieces..READS_DEPTH {
                if (*inbound).next == (*inbound).wanted {
                    break;
                }
                if !read_piece(claim, net, inbound, caller) {
                    return started;
                }
                started += 1;
            }
        }
    }
    started
}

/// Starts the next read of a receive; `false` when the transport is busy or memory is short.
///
/// # Safety
/// It is a receive of the claimed rank with data to ask for.
unsafe fn read_piece(
    claim: &mut Claim<'_>,
    net: &Net,
    inbound: *mut Inbound,
    caller: LocalRank,
) -> bool {
    // SAFETY: the caller's promise; the buffer and the piece are kept until the read is complete.
    unsafe {
        let buffer = (*(*inbound).request).buffer();
        let buffer = buffer.contiguous();
        let most = net.limits.transfer as u64;
        let most = most.min(buffer.map_or(PIECE_BYTES, |_| READ_BYTES));
        let (offset, peer) = ((*inbound).next, (*inbound).peer);
        let length = most.min((*inbound).wanted - offset);
        let room = buffer.map_or(length as usize, |_| 0);
        let Some(block) = claim.alloc(size_of::<Piece>() + room) else {
            return false;
        };
        let piece = block.cast::<Piece>();
        piece.write(Piece {
            inbound,
            offset,
            length,
            is_packed: buffer.is_none(),
        });
        let into = buffer.map_or_else(
            || piece.as_ptr().add(1).cast::<u8>(),
            |start| start.add(offset as usize),
        );
        let rank = claim.rank();
        let token = piece.as_ptr().expose_provenance() as u64 | READ;
        let started = net.transport.transfer(
            rank.id(),
            caller,
            Transfer {
                direction: Direction::Read,
                peer: rank.node().world_rank(peer),
                region: (*inbound).region,
                offset,
                memory: into,
                length: length as usize,
                token,
            },
        );
        match started {
            Ok(()) => {
                (*inbound).next += length;
                (*inbound).pieces += 1;
                true
            }
            Err(Refused::Lost(code)) => fail::broken(rank, peer, code),
            Err(Refused::Busy | Refused::OutOfMemory) => {
                claim.free_local(block);
                false
            }
        }
    }
}

/// The piece of a token.
fn piece_of(token: u64) -> NonNull<Piece> {
    let piece = core::ptr::with_exposed_provenance_mut::<Piece>((token & !READ) as usize);
    NonNull::new(piece).expect("tokens of reads are addresses")
}

/// A read is complete. Returns the bytes that it brought.
///
/// # Safety
/// The token is that of a read of the claimed rank that was under way.
pub(super) unsafe fn read_complete(claim: &mut Claim<'_>, token: u64) -> u64 {
    let piece = piece_of(token);
    // SAFETY: the caller's promise: pieces live until their reads are complete.
    unsafe {
        let Piece {
            inbound,
            offset,
            length,
            is_packed,
        } = *piece.as_ptr();
        if is_packed {
            let packed = piece.as_ptr().add(1).cast::<u8>();
            datatype::unpack((*(*inbound).request).buffer(), offset, packed, length);
        }
        claim.free_local(piece.cast());
        (*inbound).pieces -= 1;
        (*inbound).done += length;
        if (*inbound).done == (*inbound).wanted {
            claim.of::<Remote>().reading.remove(inbound);
            answer(
                claim,
                (*inbound).peer,
                Header::new(Kind::Done, (*inbound).id),
            );
            complete(claim, inbound);
        }
        length
    }
}

/// A read has failed for good.
///
/// # Safety
/// As for [`read_complete`].
pub(super) unsafe fn read_failed(claim: &mut Claim<'_>, token: u64, code: i32) -> ! {
    // SAFETY: as in `read_complete`.
    let peer = unsafe { (*(*piece_of(token).as_ptr()).inbound).peer };
    fail::broken(claim.rank(), peer, code)
}

/// Completes a receive that has all its data.
///
/// # Safety
/// It is the claimed rank's and in no list.
unsafe fn complete(claim: &mut Claim<'_>, inbound: *mut Inbound) {
    // SAFETY: the caller's promise.
    unsafe {
        Operation::complete((*inbound).request, (*inbound).status);
        names::forget(claim, (*inbound).name);
        hooks::over(claim, (*inbound).mark);
        claim.free_local(NonNull::new_unchecked(inbound).cast());
    }
    claim.expect_less(TaskKind::Net);
}

/// A sender wants a message back: forgets it unless it is matched, and says which.
pub(super) fn retract(claim: &mut Claim<'_>, peer: Peer, id: u64) {
    let found = claim.of::<P2p>().unexpected.find_where(|stored| {
        // SAFETY: elements of the queue are valid; the kind names the payload's type.
        unsafe {
            (*stored).header.kind == PayloadKind::Arrival && {
                let arrival = &*Stored::payload(stored).cast::<Arrival>();
                arrival.peer == peer && arrival.id == id
            }
        }
    });
    let mut reply = Header::new(Kind::Retracted, id);
    match NonNull::new(found) {
        // SAFETY: as above; it is ours once it is out of the queue.
        Some(stored) => unsafe {
            claim.of::<P2p>().unexpected.remove(found);
            let arrival = Stored::payload(found).cast::<Arrival>().read();
            claim.free_local(stored.cast());
            drop_data(claim, &arrival);
        },
        None => reply.flags = MATCHED,
    }
    answer(claim, peer, reply);
}
