//! The sending end of a rank: one ring per receiver, and what waits for room in it.
//!
//! Rings are made at the first message. When one is full, messages line up in the sender's heap, in
//! order; the sender's progress, which can be stolen too, moves them on. So a send never blocks
//! here, and messages of one sender to one receiver never overtake each other.

use crate::P2p;
use crate::inbox::Waiting;
use crate::ring::pairs::SHORT;
use crate::ring::pieces::Coming;
use crate::ring::{HEAD_PAYLOAD, Header, PayloadKind, Ring};
use crate::state::outbox_to;
use cohort_base::LocalRank;
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::message::Envelope;
use cohort_core::rank::Rank;
use cohort_core::subsystem::{Need, hooks};
use cohort_steal::TaskKind;
use core::ptr::{NonNull, null_mut};

/// Sends a message, or lines it up.
///
/// # Errors
/// [`EngineError::OutOfMemory`]; nothing was sent then.
///
/// # Safety
/// `payload` is readable for `header.payload` bytes; what it refers to stays valid until received.
#[inline]
pub(crate) unsafe fn post(
    claim: &mut Claim<'_>,
    to: LocalRank,
    header: Header,
    payload: *const u8,
) -> Result<(), EngineError> {
    let receiver = claim.rank().node().rank(to);
    let outbox = outbox_to(claim, to);
    // SAFETY: outboxes belong to the claim's holder, rings live as long as the node; the
    // caller's promise for the payload.
    unsafe {
        if (*outbox).ring.is_null() {
            (*outbox).ring = open(claim, receiver).ok_or(EngineError::OutOfMemory)?;
        }
        let has_room = (*outbox).first.is_null() && (*(*outbox).ring).push(header, payload);
        if has_room {
            published(claim, to, &header);
        } else {
            line_up(claim, to, header, payload)?;
        }
        let need = match header.kind {
            PayloadKind::Offer if (*outbox).first.is_null() => Some(Need::Offer((*outbox).offers)),
            PayloadKind::Offer => Some(Need::Message),
            _ => None,
        };
        receiver.notify(claim.rank(), need);
    }
    Ok(())
}

/// Bytes of the longest message that [`send_short`] takes.
pub const LONGEST: usize = HEAD_PAYLOAD;

/// What the sender of a short message does afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It may send more at once: the call does not block.
    More,
    /// Nobody knows.
    Anything,
}

/// Sends `bytes` bytes to a rank of this node, at most [`LONGEST`]. `false`: nothing was done.
///
/// # Safety
/// `data` is readable for so many bytes.
#[inline(always)]
pub unsafe fn send_short(
    claim: &mut Claim<'_>,
    data: *const u8,
    bytes: usize,
    to: LocalRank,
    envelope: Envelope,
    then: Then,
) -> bool {
    let outbox = outbox_to(claim, to);
    let header = Header::new(envelope, PayloadKind::Inline, bytes);
    // SAFETY: outboxes belong to the claim's holder, rings live as long as the node; the caller's promise for the data.
    let is_sent = unsafe {
        match (*outbox).ring.as_ref() {
            Some(ring) if (*outbox).first.is_null() => match then {
                Then::More if bytes <= SHORT => ring.push_half(header, data),
                _ => ring.push_one(header, data),
            },
            _ => false,
        }
    };
    if is_sent {
        let rank = claim.rank();
        rank.node().rank(to).notify(rank, None);
    }
    is_sent
}

/// Sends a message of one cell that its receiver may see while `fill` writes its data. `false`: nothing was done.
///
/// # Safety
/// `payload` is readable for `header.payload` bytes, at most [`LONGEST`]; what it refers to stays valid until received.
pub(crate) unsafe fn send_coming(
    claim: &mut Claim<'_>,
    to: LocalRank,
    header: Header,
    payload: *const u8,
    fill: impl FnOnce(&Coming<'_>),
) -> bool {
    let outbox = outbox_to(claim, to);
    // SAFETY: outboxes belong to the claim's holder, rings live as long as the node; the caller's promise.
    let coming = unsafe {
        match (*outbox).ring.as_ref() {
            Some(ring) if (*outbox).first.is_null() => ring.begin(header, payload),
            _ => None,
        }
    };
    let Some(coming) = coming else {
        return false;
    };
    fill(&coming);
    coming.show();
    let rank = claim.rank();
    rank.node().rank(to).notify(rank, None);
    true
}

/// A message is in the ring: counts and announces offers, which helpers look for.
#[inline]
fn published(claim: &mut Claim<'_>, to: LocalRank, header: &Header) {
    if header.kind == PayloadKind::Offer {
        let outbox = outbox_to(claim, to);
        // SAFETY: outboxes belong to the claim's holder.
        let number = unsafe {
            (*outbox).offers = (*outbox).offers.wrapping_add(1);
            (*outbox).offers
        };
        let sender = claim.rank();
        hooks::offered(sender.node().rank(to), sender, &header.envelope(), number);
    }
}

/// Makes the ring from the claimed rank to `receiver` and shows it to the receiver.
#[cold]
fn open(claim: &mut Claim<'_>, receiver: &Rank) -> Option<*const Ring> {
    let block = claim.alloc_aligned(size_of::<Ring>(), align_of::<Ring>())?.cast::<Ring>();
    // SAFETY: a fresh block of the right size; zeros are an empty ring. It is never freed.
    let ring = unsafe {
        block.as_ptr().write_bytes(0, 1);
        block.as_ref()
    };
    receiver.shared::<P2p>().inbox.add(claim.rank().id(), ring);
    Some(ring)
}

/// Appends a message to those that wait for room, after one more try.
///
/// # Safety
/// As for [`post`]; the ring is open.
#[cold]
unsafe fn line_up(claim: &mut Claim<'_>, to: LocalRank, header: Header, payload: *const u8) -> Result<(), EngineError> {
    let outbox = outbox_to(claim, to);
    // SAFETY: the caller's promise; the block has room for the message and its payload.
    unsafe {
        if (*outbox).first.is_null() {
            let ring = &*(*outbox).ring;
            if ring.starve() && ring.push(header, payload) {
                published(claim, to, &header);
                return Ok(());
            }
        }
        let length = usize::from(header.payload);
        let block = claim.alloc(size_of::<Waiting>() + length).ok_or(EngineError::OutOfMemory)?;
        let message = block.cast::<Waiting>().as_ptr();
        message.write(Waiting { header, next: null_mut() });
        payload.copy_to_nonoverlapping(message.add(1).cast(), length);
        if (*outbox).first.is_null() {
            (*outbox).first = message;
            (*outbox).next_receiver = claim.of::<P2p>().receivers_waited_for;
            claim.of::<P2p>().receivers_waited_for = to + 1;
            claim.expect_more(TaskKind::Shm);
        } else {
            (*(*outbox).last).next = message;
        }
        (*outbox).last = message;
        (*outbox).waiting += 1;
    }
    Ok(())
}

/// Moves waiting messages of the claimed rank into rings that have room. Returns how many.
pub(crate) fn flush(claim: &mut Claim<'_>) -> u32 {
    let mut moved = 0;
    let mut next = core::mem::take(&mut claim.of::<P2p>().receivers_waited_for);
    while next != 0 {
        let to = next - 1;
        let outbox = outbox_to(claim, to);
        // SAFETY: outboxes belong to the claim's holder.
        unsafe {
            next = core::mem::take(&mut (*outbox).next_receiver);
            moved += flush_to(claim, to);
            if (*outbox).first.is_null() {
                claim.expect_less(TaskKind::Shm);
            } else {
                (*outbox).next_receiver = claim.of::<P2p>().receivers_waited_for;
                claim.of::<P2p>().receivers_waited_for = to + 1;
            }
        }
    }
    moved
}

fn flush_to(claim: &mut Claim<'_>, to: LocalRank) -> u32 {
    let outbox = outbox_to(claim, to);
    let (mut moved, mut has_offer) = (0, false);
    // SAFETY: outboxes belong to the claim's holder; waiting messages are valid until freed here.
    unsafe {
        let ring = &*(*outbox).ring;
        while let Some(message) = NonNull::new((*outbox).first) {
            let header = message.as_ref().header;
            let payload = message.as_ptr().add(1).cast::<u8>();
            let moves = ring.push(header, payload) || ring.starve() && ring.push(header, payload);
            if !moves {
                break;
            }
            published(claim, to, &header);
            has_offer |= header.kind == PayloadKind::Offer;
            (*outbox).first = message.as_ref().next;
            (*outbox).waiting -= 1;
            moved += 1;
            claim.free_local(message.cast());
        }
    }
    if moved > 0 {
        let rank = claim.rank();
        rank.node().rank(to).notify(rank, has_offer.then_some(Need::Message));
    }
    moved
}
