//! Data of offers on its way.
//!
//! The data of a taken offer is read straight into the receiver's buffer (through pieces
//! that are unpacked if that is not one run of bytes), or asked for in packets. Data that is asked for before a receive
//! takes the message (`early.rs`) comes in packets into a block.

use super::Remote;
use super::arrival::{Arrival, Data, Inbound};
use super::early;
use crate::operation::Operation;
use cohort_alloc::Heap;
use cohort_base::{LocalRank, Peer};
use cohort_core::claim::Claim;
use cohort_core::message::Status;
use cohort_core::subsystem::hooks;
use cohort_datatype as datatype;
use cohort_fabric::{Direction, Refused, Transfer};
use cohort_net::fail;
use cohort_net::link::answer;
use cohort_net::names::{self, What};
use cohort_net::wire::{Header, Kind, READABLE};
use cohort_net::{Net, READ};
use cohort_steal::TaskKind;
use core::mem::size_of;
use core::ptr::{NonNull, null_mut};

/// Reads of one message that may be under way at a time.
const READS_DEPTH: u32 = 4;

/// Bytes of one read into the receiver's buffer, and of one that is unpacked afterwards.
const READ_BYTES: u64 = 1 << 20;
const PIECE_BYTES: u64 = 64 << 10;

/// One read under way; what is to be unpacked lies behind it.
struct Piece {
    inbound: *mut Inbound,
    offset: u64,
    length: u64,
    is_packed: bool,
}

/// Begins to move the data of a taken offer.
///
/// # Safety
/// `request` is a pending receive of the claimed rank in no queue, with room for the data.
pub(super) unsafe fn fetch(claim: &mut Claim<'_>, arrival: &Arrival, request: *mut Operation, status: Status) {
    let Some(inbound) = Inbound::make(claim, arrival, status.bytes as u64) else {
        fail::no_memory(claim.rank(), arrival.peer);
    };
    // SAFETY: fresh, in no list.
    unsafe {
        (*inbound.as_ptr()).request = request;
        (*inbound.as_ptr()).status = status;
        if arrival.flags & READABLE != 0 {
            claim.of::<Remote>().reading.push(inbound.as_ptr());
        } else if Inbound::ask(inbound, claim).is_none() {
            fail::no_memory(claim.rank(), arrival.peer);
        }
    }
    claim.expect_more(TaskKind::Net);
}

/// Gives a receive the message whose data is on its way into a block.
///
/// # Safety
/// `inbound` is that of an arrival, which ends here; `request` is a pending receive of the claimed rank in no queue.
pub(super) unsafe fn hand_over(inbound: NonNull<Inbound>, request: *mut Operation, status: Status) {
    // SAFETY: the caller's promise.
    unsafe {
        (*inbound.as_ptr()).request = request;
        (*inbound.as_ptr()).status = status;
        (*inbound.as_ptr()).arrival = null_mut();
    }
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
        (*inbound).take(header.bytes, body);
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
unsafe fn read_piece(claim: &mut Claim<'_>, net: &Net, inbound: *mut Inbound, caller: LocalRank) -> bool {
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
        piece.write(Piece { inbound, offset, length, is_packed: buffer.is_none() });
        let into = buffer.map_or_else(|| piece.as_ptr().add(1).cast::<u8>(), |start| start.add(offset as usize));
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
        let Piece { inbound, offset, length, is_packed } = *piece.as_ptr();
        if is_packed {
            let packed = piece.as_ptr().add(1).cast::<u8>();
            datatype::unpack((*(*inbound).request).buffer(), offset, packed, length);
        }
        claim.free_local(piece.cast());
        (*inbound).pieces -= 1;
        (*inbound).done += length;
        if (*inbound).done == (*inbound).wanted {
            claim.of::<Remote>().reading.remove(inbound);
            answer(claim, (*inbound).peer, Header::new(Kind::Done, (*inbound).id));
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

/// All data has come: completes the receive, or leaves the data with the message.
///
/// # Safety
/// It is the claimed rank's and in no list.
unsafe fn complete(claim: &mut Claim<'_>, inbound: *mut Inbound) {
    // SAFETY: the caller's promise; a message that no receive has taken stays where it is.
    unsafe {
        let Inbound { request, status, block, .. } = *inbound;
        if let Some(arrival) = (*inbound).arrival.as_mut() {
            arrival.data = Data::Stored(block);
        } else {
            if let Some(block) = NonNull::new(block) {
                let buffer = (*request).buffer();
                datatype::unpack(buffer, 0, block.as_ptr(), status.bytes as u64);
                Heap::free(block);
                early::release(claim, (*inbound).peer, (*inbound).wanted);
            }
            Operation::complete(request, status);
        }
        names::forget(claim, (*inbound).name);
        hooks::over(claim, (*inbound).mark);
        claim.free_local(NonNull::new_unchecked(inbound).cast());
    }
    claim.expect_less(TaskKind::Net);
}
