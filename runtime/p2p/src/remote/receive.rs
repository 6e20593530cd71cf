//! Data of RTS messages on its way.
//!
//! The data of a taken RTS is read straight into the receiver's buffer (through pieces
//! that are unpacked if that is not one run of bytes), or asked for in packets. Data that is asked for before a receive
//! takes the message (`early.rs`) comes in packets into a block.

use super::Remote;
use super::arrival::{Arrival, Data, Inbound};
use super::early;
use super::failing::read_lost;
use crate::operation::Operation;
use cohort_alloc::Heap;
use cohort_base::{LocalRank, Peer};
use cohort_core::claim::Claim;
use cohort_core::message::Status;
use cohort_core::record::RecordRef;
use cohort_core::subsystem::hooks;
use cohort_datatype as datatype;
use cohort_fabric::{Direction, Place, Refused, Transfer};
use cohort_net::fail;
use cohort_net::link::{answer, owe};
use cohort_net::names;
use cohort_net::wire::{Header, PacketKind, READABLE};
use cohort_net::{Net, READ};
use cohort_steal::TaskKind;
use core::mem::size_of;
use core::ptr::NonNull;

/// Reads of one message that may be under way at a time.
const READS_DEPTH: u32 = 4;

/// Bytes of one read into the receiver's buffer, and of one that is unpacked afterwards.
const READ_BYTES: u64 = 1 << 20;
const PIECE_BYTES: u64 = 64 << 10;

/// One read under way; what is to be unpacked lies behind it.
struct Piece {
    inbound: RecordRef<Inbound>,
    offset: u64,
    length: u64,
    is_packed: bool,
}

/// Begins to move the data of a taken RTS.
///
/// # Safety
/// `request` is a pending receive of the claimed rank in no queue, with room for the data.
pub(super) unsafe fn fetch(claim: &mut Claim<'_>, arrival: &Arrival, request: RecordRef<Operation>, status: Status) {
    let Some(inbound) = Inbound::make(claim, arrival, status.bytes as u64) else {
        fail::no_memory(claim.rank(), arrival.peer);
    };
    inbound.request.set(Some(request));
    inbound.status.set(status);
    if arrival.flags & READABLE != 0 {
        claim.of::<Remote>().reading.push(inbound);
    } else if Inbound::ask(inbound, claim).is_none() {
        fail::no_memory(claim.rank(), arrival.peer);
    }
    claim.expect_more(TaskKind::Net);
}

/// Begins to receive a message of which `body` has come: says where the rest goes. `None` without memory; nothing was
/// done.
///
/// # Safety
/// `request` is a posted receive of the claimed rank that the message matches, and `into` its buffer, of one run of
/// bytes, with room for all of the message.
pub(super) unsafe fn begin(
    claim: &mut Claim<'_>,
    arrival: &Arrival,
    (request, into): (RecordRef<Operation>, *mut u8),
    status: Status,
    body: &[u8],
) -> Option<Place> {
    let block = claim.alloc(size_of::<Piece>())?;
    let Some(inbound) = Inbound::make(claim, arrival, arrival.bytes) else {
        // SAFETY: fresh.
        unsafe { claim.free_local(block) };
        return None;
    };
    let piece = block.cast::<Piece>();
    let offset = body.len() as u64;
    inbound.request.set(Some(request));
    inbound.status.set(status);
    inbound.next.set(arrival.bytes);
    inbound.done.set(offset);
    inbound.pieces.set(1);
    claim.of::<Remote>().reading.push(inbound);
    claim.expect_more(TaskKind::Net);
    let token = piece.as_ptr().expose_provenance() as u64 | READ;
    // SAFETY: the block is fresh, and has room for the piece; the caller's promise about the buffer.
    unsafe {
        piece.write(Piece { inbound, offset, length: arrival.bytes - offset, is_packed: false });
        into.copy_from_nonoverlapping(body.as_ptr(), body.len());
        Some(Place { memory: into.add(body.len()), token })
    }
}

/// Gives a receive the message whose data is on its way into a block.
///
/// # Safety
/// `inbound` is that of an arrival, which ends here; `request` is a pending receive of the claimed rank in no queue.
pub(super) unsafe fn hand_over(inbound: RecordRef<Inbound>, request: RecordRef<Operation>, status: Status) {
    inbound.request.set(Some(request));
    inbound.status.set(status);
    inbound.arrival.set(None);
}

/// Data that was asked for in packets. Returns the bytes copied; none if nobody has asked for these.
pub(super) fn data(claim: &mut Claim<'_>, peer: Peer, header: &Header, body: &[u8]) -> Option<u64> {
    let inbound: RecordRef<Inbound> = names::find(claim, peer, header.receive)?;
    let length = body.len() as u64;
    // Pieces come in their order.
    if header.bytes != inbound.done.get() || length > inbound.wanted - inbound.done.get() {
        return None;
    }
    // SAFETY: that was seen above. What has a name is in no list.
    unsafe {
        inbound.take(header.bytes, body);
        if inbound.done.get() == inbound.wanted {
            complete(claim, inbound);
        }
    }
    Some(length)
}

/// Starts reads for the receives that wait for them, a few of each at a time. Returns how many.
pub(super) fn read_more(claim: &mut Claim<'_>, net: &Net, caller: LocalRank) -> u32 {
    let mut started = 0;
    let mut next = claim.of::<Remote>().reading.first();
    while let Some(inbound) = next {
        next = claim.of::<Remote>().reading.next(inbound);
        for _ in inbound.pieces.get()..READS_DEPTH {
            if inbound.next.get() == inbound.wanted {
                break;
            }
            if !read_piece(claim, net, inbound, caller) {
                return started;
            }
            started += 1;
        }
    }
    started
}

/// Starts the next read of a receive with data to ask for; `false` when the transport is busy or memory is short.
fn read_piece(claim: &mut Claim<'_>, net: &Net, inbound: RecordRef<Inbound>, caller: LocalRank) -> bool {
    let request = inbound.request.get();
    let buffer = request.as_ref().and_then(|request| request.buffer().contiguous());
    let most = net.limits.transfer as u64;
    let most = most.min(buffer.map_or(PIECE_BYTES, |_| READ_BYTES));
    let (offset, peer) = (inbound.next.get(), inbound.peer);
    let length = most.min(inbound.wanted - offset);
    let room = buffer.map_or(length as usize, |_| 0);
    let Some(block) = claim.alloc(size_of::<Piece>() + room) else {
        return false;
    };
    let piece = block.cast::<Piece>();
    let rank = claim.rank();
    let token = piece.as_ptr().expose_provenance() as u64 | READ;
    // SAFETY: the block is fresh, and has room for the piece and its data. They and the receive's buffer are kept until
    // the read is complete.
    let started = unsafe {
        piece.write(Piece { inbound, offset, length, is_packed: buffer.is_none() });
        let into = buffer.map_or_else(|| piece.as_ptr().add(1).cast::<u8>(), |start| start.add(offset as usize));
        let read = Transfer {
            direction: Direction::Read,
            peer: rank.node().world_rank(peer),
            region: inbound.region,
            offset,
            memory: into,
            length: length as usize,
            token,
        };
        net.transport.transfer(rank.id(), caller, read)
    };
    match started {
        Ok(()) => {
            inbound.next.set(offset + length);
            inbound.pieces.set(inbound.pieces.get() + 1);
            true
        }
        Err(Refused::Lost(code)) => {
            // SAFETY: the transport has not taken it.
            unsafe { claim.free_local(block) };
            read_lost(claim, inbound, code);
            false
        }
        Err(Refused::Busy | Refused::OutOfMemory) => {
            // SAFETY: the transport has not taken it.
            unsafe { claim.free_local(block) };
            false
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
    // SAFETY: the caller's promise: pieces live until their reads are complete, and what was packed lies behind them.
    unsafe {
        let Piece { inbound, offset, length, is_packed } = *piece.as_ptr();
        if let Some(request) = inbound.request.get().filter(|_| is_packed) {
            let packed = piece.as_ptr().add(1).cast::<u8>();
            datatype::unpack(request.buffer(), offset, packed, length);
        }
        claim.free_local(piece.cast());
        inbound.pieces.set(inbound.pieces.get() - 1);
        inbound.done.set(inbound.done.get() + length);
        if inbound.done.get() == inbound.wanted {
            claim.of::<Remote>().reading.remove(inbound);
            if inbound.is_owed {
                owe(claim, inbound.peer, inbound.wanted);
            }
            if inbound.is_answered {
                answer(claim, inbound.peer, Header::new(PacketKind::Done, inbound.id));
            }
            complete(claim, inbound);
        }
        length
    }
}

/// A read has failed for good.
///
/// # Safety
/// As for [`read_complete`].
pub(super) unsafe fn read_failed(claim: &mut Claim<'_>, token: u64, code: i32) -> u64 {
    let piece = piece_of(token);
    // SAFETY: as in `read_complete`.
    unsafe {
        let inbound = piece.as_ref().inbound;
        claim.free_local(piece.cast());
        inbound.pieces.set(inbound.pieces.get() - 1);
        read_lost(claim, inbound, code);
    }
    0
}

/// All data has come: completes the receive, or leaves the data with the message.
///
/// # Safety
/// It is the claimed rank's and in no list, and not used any more.
unsafe fn complete(claim: &mut Claim<'_>, inbound: RecordRef<Inbound>) {
    let (status, block) = (inbound.status.get(), inbound.block.get());
    if let Some(arrival) = inbound.arrival.get() {
        arrival.data.set(Data::Stored(block));
    } else if let Some(request) = inbound.request.get() {
        // SAFETY: the block has all data, and is nobody else's; the receive is pending, and this is its message.
        unsafe {
            if let Some(block) = NonNull::new(block) {
                datatype::unpack(request.buffer(), 0, block.as_ptr(), status.bytes as u64);
                Heap::free(block);
                early::release(claim, inbound.peer, inbound.wanted);
            }
            Operation::complete(request, status);
        }
    }
    names::forget(claim, inbound.name.get());
    hooks::over(claim, inbound.mark);
    // SAFETY: the caller's promise; it has no name any more.
    unsafe { inbound.free(claim) };
    claim.expect_less(TaskKind::Net);
}
