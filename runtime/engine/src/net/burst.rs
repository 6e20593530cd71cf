//! Messages whose data comes in several packets without being asked for.
//!
//! Between the shortest messages and those that are worth an offer, a question and an answer lie some that fill a few packets.
//! They are sent as one [`Kind::Eager`] with a part of the data and [`Kind::More`] behind it, lined up together, so that
//! nothing of the same sender comes between. The receiver matches the message when all of it is there: what
//! it has not matched yet is in nobody's queue, and the next message of that sender comes later, so
//! the order is kept. The data is put together in a block, whose size the pair's window bounds, or in the
//! buffer of a receive that waits for it when the first packet comes.

use super::link::{Link, Outgoing, line_up, owe};
use super::receive::arrive_in_block;
use super::wire::{Header, Kind, MORE, SYNCHRONOUS};
use super::{BURST, Net, fail, link};
use crate::claim::Claim;
use crate::datatype::{self, Layout};
use crate::error::EngineError;
use crate::message::Status;
use crate::request::Request;
use cohort_alloc::Heap;
use cohort_steal::TaskKind;
use core::ptr::NonNull;

/// A message of which a part has come.
#[derive(Debug)]
pub(crate) struct Burst {
    header: Header,
    done: u64,
    into: Target,
}

/// Where the data goes.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// To the receive that has matched it.
    Receive(NonNull<Request>),
    /// To a block of the heap.
    Block(NonNull<u8>),
}

/// Lines up a message with its data, in as many packets as that takes.
///
/// # Safety
/// The layout's data is readable, and at most [`Net::eager_max`] bytes; the link is the claimed rank's.
///
/// # Errors
/// No memory; then nothing was lined up.
pub(super) unsafe fn send(
    claim: &mut Claim<'_>,
    net: &Net,
    link: NonNull<Link>,
    mut header: Header,
    layout: Layout<'_>,
) -> Result<(), EngineError> {
    let bytes = layout.bytes();
    if bytes > net.packet_max {
        header.flags |= MORE;
    }
    let mut packets = [None; BURST];
    let mut at = 0;
    for packet in &mut packets {
        let length = (bytes - at).min(net.packet_max);
        let Ok((made, room)) = Outgoing::with_room(claim, header, length as usize) else {
            // SAFETY: nobody else knows of them.
            packets
                .into_iter()
                .flatten()
                .for_each(|made: NonNull<Outgoing>| unsafe {
                    Heap::free(made.cast());
                });
            return Err(EngineError::OutOfMemory);
        };
        // SAFETY: the caller's promise; the packet has room for that many bytes.
        unsafe { datatype::pack(layout, at, room, length) };
        *packet = Some(made);
        at += length;
        if at == bytes {
            break;
        }
        header = Header::new(Kind::More, 0);
        header.bytes = at;
    }
    for packet in packets.into_iter().flatten() {
        // SAFETY: fresh; the caller's promise.
        unsafe { line_up(claim, link, packet) };
    }
    Ok(())
}

/// The first packet of a burst has come. Returns the bytes that were copied into a user's buffer.
///
/// # Safety
/// The link is the claimed rank's.
pub(super) unsafe fn begin(
    claim: &mut Claim<'_>,
    mut link: NonNull<Link>,
    header: &Header,
    body: &[u8],
) -> u64 {
    // SAFETY: the caller's promise.
    let peer = unsafe { link.as_ref().peer };
    let request = claim.state().posted.find(&header.envelope());
    let into = match NonNull::new(request) {
        Some(request) => {
            // SAFETY: a posted request is valid and pending, and ours once it is out of the queue.
            unsafe { claim.unpost_receive(request.as_ptr()) };
            Target::Receive(request)
        }
        None => match claim.alloc(header.bytes as usize) {
            Some(block) => Target::Block(block),
            None => fail::no_memory(claim.rank(), peer),
        },
    };
    let burst = Burst {
        header: *header,
        done: 0,
        into,
    };
    // SAFETY: the caller's promise.
    let before = unsafe { link.as_mut().burst.replace(burst) };
    if before.is_some() {
        fail::nonsense(claim.rank(), peer);
    }
    claim.expect_more(TaskKind::Net);
    // SAFETY: the caller's promise.
    unsafe { add(claim, link, 0, body) }
}

/// A further packet has come.
///
/// # Safety
/// As [`begin`].
pub(super) unsafe fn go_on(
    claim: &mut Claim<'_>,
    link: NonNull<Link>,
    header: &Header,
    body: &[u8],
) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { add(claim, link, header.bytes, body) }
}

/// Takes the data of a packet, and the message if that is the last.
///
/// # Safety
/// As [`begin`].
unsafe fn add(claim: &mut Claim<'_>, mut link: NonNull<Link>, at: u64, body: &[u8]) -> u64 {
    // SAFETY: the caller's promise.
    let Link { burst, peer, .. } = unsafe { link.as_mut() };
    let (peer, length) = (*peer, body.len() as u64);
    let Some(Burst { header, done, into }) = burst else {
        fail::nonsense(claim.rank(), peer);
    };
    if *done != at || length > header.bytes - at {
        fail::nonsense(claim.rank(), peer);
    }
    let mut copied = 0;
    // SAFETY: the receive is pending and in no queue; the block has room for the message.
    unsafe {
        match *into {
            Target::Receive(request) => {
                if let Some(layout) = request.as_ref().layout() {
                    copied = datatype::unpack(layout, at, body.as_ptr(), length);
                }
            }
            Target::Block(block) => block
                .as_ptr()
                .add(at as usize)
                .copy_from_nonoverlapping(body.as_ptr(), body.len()),
        }
    }
    *done += length;
    if *done < header.bytes {
        return copied;
    }
    let (header, into) = (*header, *into);
    *burst = None;
    claim.expect_less(TaskKind::Net);
    match into {
        // SAFETY: as above.
        Target::Receive(request) => unsafe { complete(claim, link, &header, request) },
        Target::Block(block) => copied += arrive_in_block(claim, peer, &header, block),
    }
    copied
}

/// Completes the receive of a message that is all there.
///
/// # Safety
/// It is pending and in no queue; the link is the claimed rank's.
unsafe fn complete(
    claim: &mut Claim<'_>,
    link: NonNull<Link>,
    header: &Header,
    request: NonNull<Request>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let capacity = request.as_ref().layout().map_or(0, |layout| layout.bytes());
        let status = Status::delivered(header.envelope(), header.bytes, capacity);
        let peer = link.as_ref().peer;
        owe(claim, peer, header.bytes);
        if header.flags & SYNCHRONOUS != 0 {
            link::answer(claim, peer, Header::new(Kind::Done, header.id));
        }
        Request::complete(request.as_ptr(), status);
    }
}
