//! The sending end of a rank: one ring per receiver, and what waits for room in it.
//!
//! Rings are made at the first message. When one is full, messages line up in the sender's heap, in
//! order; the sender's progress, which can be stolen too, moves them on. So a send never blocks
//! here, and messages of one sender to one receiver never overtake each other.

use crate::P2p;
use crate::inbox::{Outbox, Waiting};
use crate::ring::pairs::SHORT;
use crate::ring::pieces::Coming;
use crate::ring::{HEAD_PAYLOAD, Header, PayloadKind, Ring};
use crate::state::outbox_to;
use cohort_base::LocalRank;
use cohort_base::boot::Lifecycle;
use cohort_base::sync::atomic::{Ordering, fence};
use cohort_base::sync::pause;
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::message::Envelope;
use cohort_core::rank::Rank;
use cohort_core::record::RecordRef;
use cohort_core::subsystem::{Need, hooks};
use cohort_steal::TaskKind;
use core::cell::Cell;

/// Times that whoever makes room for a rank that has ended asks for its claim, and gives its CPU away in between.
const TRIES: u32 = 100_000;

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
    let ring = match outbox.ring.get() {
        Some(ring) => ring,
        None => open(claim, receiver, outbox).ok_or(EngineError::OutOfMemory)?,
    };
    // SAFETY: the holder of the claim is the producer; the caller's promise for the payload.
    unsafe {
        if outbox.is_free() && ring.push(header, payload) {
            published(claim, to, &header);
        } else {
            line_up(claim, to, ring, header, payload)?;
        }
    }
    let need = match header.kind {
        PayloadKind::Rts if outbox.is_free() => Some(Need::Rts(outbox.rts_count.get())),
        PayloadKind::Rts => Some(Need::Message),
        _ => None,
    };
    receiver.notify(claim.rank(), need);
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
    // SAFETY: the holder of the claim is the producer; the caller's promise for the data.
    let is_sent = unsafe {
        match outbox.free_ring() {
            Some(ring) => match then {
                Then::More if bytes <= SHORT => ring.push_half(header, data),
                _ => ring.push_one(header, data),
            },
            None => false,
        }
    };
    if is_sent {
        let rank = claim.rank();
        rank.node().rank(to).notify(rank, None);
    }
    is_sent
}

/// [`send_short`] of several cells' bytes.
///
/// # Safety
/// As there; at most the bytes of a message's cells.
#[inline(always)]
pub unsafe fn send_in_cells(
    claim: &mut Claim<'_>,
    data: *const u8,
    bytes: usize,
    to: LocalRank,
    envelope: &Envelope,
) -> bool {
    let header = Header::new(*envelope, PayloadKind::Inline, bytes);
    let ring = outbox_to(claim, to).free_ring();
    // SAFETY: the holder of the claim is the producer; the caller's promise for the data.
    let is_sent = ring.is_some_and(|ring| unsafe { ring.push(header, data) });
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
    // SAFETY: the holder of the claim is the producer; the caller's promise.
    let coming = outbox.free_ring().and_then(|ring| unsafe { ring.begin(header, payload) });
    let Some(coming) = coming else {
        return false;
    };
    fill(&coming);
    coming.show();
    let rank = claim.rank();
    rank.node().rank(to).notify(rank, None);
    true
}

/// How many cells of a ring of the claimed rank's were sent.
pub(crate) fn sent_by(_claim: &mut Claim<'_>, ring: &Ring) -> u64 {
    // SAFETY: the holder of the claim is the producer.
    unsafe { ring.sent() }
}

/// A message is in the ring: counts and announces RTS messages, which helpers look for.
#[inline]
fn published(claim: &mut Claim<'_>, to: LocalRank, header: &Header) {
    if header.kind == PayloadKind::Rts {
        let outbox = outbox_to(claim, to);
        let number = outbox.rts_count.get().wrapping_add(1);
        outbox.rts_count.set(number);
        let sender = claim.rank();
        hooks::offered(sender.node().rank(to), sender, &header.envelope(), number);
    }
}

/// Makes the ring from the claimed rank to `receiver` and shows it to the receiver.
#[cold]
fn open(claim: &mut Claim<'_>, receiver: &Rank, outbox: &Outbox) -> Option<&'static Ring> {
    let block = claim.alloc_aligned(size_of::<Ring>(), align_of::<Ring>())?.cast::<Ring>();
    // SAFETY: a fresh block of the right size; zeros are an empty ring. It is never freed.
    let ring: &'static Ring = unsafe {
        block.as_ptr().write_bytes(0, 1);
        block.as_ref()
    };
    outbox.ring.set(Some(ring));
    receiver.shared::<P2p>().inbox.add(claim.rank().id(), ring);
    Some(ring)
}

/// Appends a message to those that wait for room, after one more try.
///
/// # Safety
/// As for [`post`]; the ring is the one to that receiver.
#[cold]
unsafe fn line_up(
    claim: &mut Claim<'_>,
    to: LocalRank,
    ring: &Ring,
    header: Header,
    payload: *const u8,
) -> Result<(), EngineError> {
    let outbox = outbox_to(claim, to);
    // SAFETY: the caller's promise; the block has room for the message and its payload.
    let message = unsafe {
        if outbox.is_free() && ring.starve() && ring.push(header, payload) {
            published(claim, to, &header);
            return Ok(());
        }
        let length = usize::from(header.payload);
        let block = claim.alloc(size_of::<Waiting>() + length).ok_or(EngineError::OutOfMemory)?;
        let message = block.cast::<Waiting>();
        message.write(Waiting { header, next: Cell::new(None) });
        payload.copy_to_nonoverlapping(message.as_ptr().add(1).cast(), length);
        RecordRef::new(message)
    };
    match outbox.last.replace(Some(message)).filter(|_| !outbox.is_free()) {
        Some(last) => last.next.set(Some(message)),
        None => {
            outbox.first.set(Some(message));
            outbox.next_receiver.set(claim.of::<P2p>().receivers_waited_for);
            claim.of::<P2p>().receivers_waited_for = to + 1;
            claim.expect_more(TaskKind::Shm);
        }
    }
    outbox.waiting.set(outbox.waiting.get() + 1);
    Ok(())
}

/// Moves waiting messages of the claimed rank into rings that have room. Returns how many.
pub(crate) fn flush(claim: &mut Claim<'_>) -> u32 {
    let mut moved = 0;
    let mut next = core::mem::take(&mut claim.of::<P2p>().receivers_waited_for);
    while next != 0 {
        let to = next - 1;
        let outbox = outbox_to(claim, to);
        next = outbox.next_receiver.take();
        moved += flush_to(claim, to, outbox);
        if outbox.is_free() {
            claim.expect_less(TaskKind::Shm);
        } else {
            outbox.next_receiver.set(claim.of::<P2p>().receivers_waited_for);
            claim.of::<P2p>().receivers_waited_for = to + 1;
        }
    }
    moved
}

/// [`flush`] if messages to this receiver alone wait: with many receivers each send would look at all of them.
pub(crate) fn flush_only(claim: &mut Claim<'_>, to: LocalRank) {
    if claim.of::<P2p>().receivers_waited_for == to + 1 && outbox_to(claim, to).next_receiver.get() == 0 {
        flush(claim);
    }
}

/// The receiver `by` has made room in the ring of a sender that waits for it.
///
/// A sender whose program has ended MPI is not told: it has no call any more in which it could go on. Whoever makes
/// room does so for it. [`leave_messages`] has the proof that one of both sees the other.
#[cold]
pub(crate) fn made_room(by: &Rank, sender: LocalRank) {
    let sender = by.node().rank(sender);
    // The fence pairs with that of `leave_messages`.
    fence(Ordering::Acquire);
    if sender.boot().lifecycle.load(Ordering::Relaxed) != Lifecycle::Finalized as u32 {
        sender.notify(by, Some(Need::Message));
        return;
    }
    for _ in 0..TRIES {
        if let Some(mut claim) = sender.try_steal(by.id()) {
            flush(&mut claim);
            return;
        }
        // A thief has it, for one turn.
        if by.node().yield_policy().give_way().is_none() {
            pause();
        }
    }
}

/// The rank has ended MPI, as its `lifecycle` says: what waits for room in rings goes on its way now, or is left to
/// those who make room ([`made_room`]). The caller does not hold the claim.
///
/// Whoever waits here for room has raised `starving` of the ring once more, after the lifecycle was stored (release
/// fence below). A receiver that finds it raised (acquire fence there) sees that lifecycle, and takes the claim. One
/// that found it raised before has made room that this flush sees, by the protocol of the ring.
pub fn leave_messages(rank: &Rank) {
    fence(Ordering::Release);
    flush(&mut rank.enter());
}

fn flush_to(claim: &mut Claim<'_>, to: LocalRank, outbox: &Outbox) -> u32 {
    let Some(ring) = outbox.ring.get() else {
        return 0;
    };
    let (mut moved, mut has_rts) = (0, false);
    while let Some(message) = outbox.first.get() {
        let header = message.header;
        let payload = message.as_ptr().wrapping_add(1).cast::<u8>();
        // SAFETY: the holder of the claim is the producer; the payload lies behind the message.
        let moves = unsafe { ring.push(header, payload) || ring.starve() && ring.push(header, payload) };
        if !moves {
            break;
        }
        published(claim, to, &header);
        has_rts |= header.kind == PayloadKind::Rts;
        outbox.first.set(message.next.get());
        outbox.waiting.set(outbox.waiting.get() - 1);
        moved += 1;
        // SAFETY: nobody else knows it.
        unsafe { message.free(claim) };
    }
    if moved > 0 {
        let rank = claim.rank();
        rank.node().rank(to).notify(rank, has_rts.then_some(Need::Message));
    }
    moved
}
