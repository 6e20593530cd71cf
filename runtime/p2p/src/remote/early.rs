//! RTS messages that wait for room.
//!
//! A sender offers a short message when the pair's window is used up ([`cohort_net::link`]), and a program that calls
//! `MPI_Send` for it waits. It may wait for ever, if the receiver has taken what filled the window and goes on to wait
//! for a later message: MPI lets a program hope only for buffers that it attaches (MPI-4.1, 3.5), but programs do. So
//! the receiver asks for the data of such an RTS as soon as the messages of that peer that it keeps leave room in a
//! window, in the order in which the RTS messages came. Then sends wait for receives only while there is a window full
//! of messages that nobody has taken. What a rank keeps of one peer stays below two windows and a quarter: one of
//! messages that came with their data, which the sender counts, and one and a quarter that this side counts.
//!
//! The quarter is for programs that receive in another order than the peer sends in, where a window full of messages
//! is kept that come last. A receive that takes an RTS which waits asks for some of its neighbours too
//! ([`ask_near`]): so there is one round trip for a few dozen receives.
//!
//! A synchronous send is over when a receive has taken it, so its data is never asked for early. Nor is that of a long
//! message, which is read into the receiver's buffer.

use super::arrival::{Arrival, Data, Inbound};
use cohort_base::Peer;
use cohort_core::claim::Claim;
use cohort_core::record::RecordRef;
use cohort_core::subsystem::hooks;
use cohort_net::link::{self, InWaiting, Link, WINDOW, answer, link_to};
use cohort_net::wire::{Header, PacketKind};
use cohort_steal::TaskKind;
use core::ptr::{NonNull, null_mut};

/// RTS messages that are asked for together with one that a receive takes, and their bytes.
const NEAR_COUNT: u32 = 64;
const NEAR_BYTES: u64 = 64 << 10;

/// What the messages that are asked for so may cost beyond the window.
const AHEAD: u64 = WINDOW / 4;

/// Asks for the data of the RTS messages that wait, the oldest first, as far as there is room for it.
pub(super) fn ask(claim: &mut Claim<'_>, peer: Peer) {
    let Ok(link) = link_to(claim, peer) else {
        return;
    };
    while let Some(first) = link.waiting.first() {
        if ask_for(claim, link, first, WINDOW).is_none() {
            return;
        }
    }
}

/// The RTS messages that wait next to one of the same peer.
pub(super) struct Near {
    before: Option<RecordRef<InWaiting>>,
    after: Option<RecordRef<InWaiting>>,
}

/// An RTS that waits, as an element of its link's list.
fn in_list(claim: &mut Claim<'_>, arrival: &Arrival) -> Option<(RecordRef<Link>, RecordRef<InWaiting>)> {
    let Data::Waiting = arrival.data.get() else {
        return None;
    };
    let link = link_to(claim, arrival.peer).ok()?;
    // SAFETY: what waits is stored, and stays where it is until it is taken out of the list.
    Some((link, unsafe { RecordRef::new(NonNull::from_ref(&arrival.waiting)) }))
}

/// The neighbours of an RTS that a receive takes.
pub(super) fn near(claim: &mut Claim<'_>, arrival: &Arrival) -> Near {
    let Some((link, rts)) = in_list(claim, arrival) else {
        return Near { before: None, after: None };
    };
    Near { before: link.waiting.previous(rts), after: link.waiting.next(rts) }
}

/// Asks for the data of RTS messages next to one that a receive has taken, to both sides in turn: the program receives
/// in another order than the peer sends in, so the next receives are likely to take these. A bounded number of them,
/// and with a bounded cost beyond the window: one request for each would cost the program a round trip for each
/// receive.
///
/// The neighbours are RTS messages of that peer that wait; nothing was withdrawn since they were looked for but the RTS
/// between them.
pub(super) fn ask_near(claim: &mut Claim<'_>, peer: Peer, near: Near) {
    let Ok(link) = link_to(claim, peer) else {
        return;
    };
    let mut sides = [near.before, near.after];
    let mut bytes = 0;
    for turn in 0..NEAR_COUNT as usize {
        let side = match sides[turn % 2].is_none() {
            false => turn % 2,
            true => 1 - turn % 2,
        };
        let Some(rts) = sides[side] else {
            return;
        };
        sides[side] = match side {
            0 => link.waiting.previous(rts),
            _ => link.waiting.next(rts),
        };
        bytes += Arrival::in_list(rts).bytes;
        if bytes > NEAR_BYTES || ask_for(claim, link, rts, WINDOW + AHEAD).is_none() {
            return;
        }
    }
}

/// Asks for the data of an RTS that waits in the list of a link, if all that is kept of its peer costs at most
/// `limit` with it. `None` if not, or without memory: a later message that is taken tries again.
fn ask_for(claim: &mut Claim<'_>, link: RecordRef<Link>, rts: RecordRef<InWaiting>, limit: u64) -> Option<()> {
    let arrival = Arrival::in_list(rts);
    let cost = link::cost(arrival.bytes);
    if link.kept.get() + cost > limit {
        return None;
    }
    if arrival.bytes == 0 {
        answer(claim, arrival.peer, Header::new(PacketKind::Done, arrival.id));
        arrival.data.set(Data::Stored(null_mut()));
    } else {
        fetch(claim, arrival)?;
    }
    link.waiting.remove(rts);
    link.kept.set(link.kept.get() + cost);
    Some(())
}

/// A message of `bytes` bytes that was kept for a peer is gone: RTS messages of that peer may find room.
pub(super) fn release(claim: &mut Claim<'_>, peer: Peer, bytes: u64) {
    if let Ok(link) = link_to(claim, peer) {
        link.kept.set(link.kept.get() - link::cost(bytes));
        if !link.waiting.is_empty() {
            ask(claim, peer);
        }
    }
}

/// Asks for the data of a message that no receive has taken, and that cannot be read. `None` without memory: nothing
/// was done.
fn fetch(claim: &mut Claim<'_>, arrival: RecordRef<Arrival>) -> Option<()> {
    let block = claim.alloc(arrival.bytes as usize)?;
    let asked = Inbound::make(claim, &arrival, arrival.bytes).and_then(|inbound| {
        inbound.block.set(block.as_ptr());
        inbound.arrival.set(Some(arrival));
        let asked = Inbound::ask(inbound, claim);
        if asked.is_none() {
            hooks::over(claim, inbound.mark);
            // SAFETY: it has no name, so nobody knows it.
            unsafe { inbound.free(claim) };
        }
        asked.map(|()| inbound)
    });
    let Some(inbound) = asked else {
        // SAFETY: fresh.
        unsafe { claim.free_local(block) };
        return None;
    };
    arrival.data.set(Data::Coming(inbound));
    claim.expect_more(TaskKind::Net);
    Some(())
}

/// Takes an arrival out of the list of RTS messages that wait for room. It lies where it was stored, if it was.
pub(super) fn withdraw(claim: &mut Claim<'_>, arrival: &Arrival) {
    if let Some((link, rts)) = in_list(claim, arrival) {
        arrival.data.set(Data::Offered);
        link.waiting.remove(rts);
    }
}
