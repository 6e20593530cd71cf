//! Offers that wait for room.
//!
//! A sender offers a short message when the pair's window is used up ([`cohort_net::link`]), and a program that calls
//! `MPI_Send` for it waits. It may wait for ever, if the receiver has taken what filled the window and goes on to wait
//! for a later message: MPI lets a program hope only for buffers that it attaches (MPI-4.1, 3.5), but programs do. So
//! the receiver asks for the data of such an offer as soon as the messages of that peer that it keeps leave room in a
//! window, in the order in which the offers came. Then sends wait for receives only while there is a window full of
//! messages that nobody has taken. What a rank keeps of one peer stays below two windows and a quarter: one of messages
//! that came with their data, which the sender counts, and one and a quarter that this side counts.
//!
//! The quarter is for programs that receive in another order than the peer sends in, where a window full of messages
//! is kept that come last. A receive that takes an offer which waits asks for some of its neighbours too
//! ([`ask_near`]): so there is one round trip for a few dozen receives.
//!
//! A synchronous send is over when a receive has taken it, so its data is never asked for early. Nor is that of a long
//! message, which is read into the receiver's buffer.

use super::arrival::{Arrival, Data, Inbound};
use cohort_base::Peer;
use cohort_core::claim::Claim;
use cohort_core::subsystem::hooks;
use cohort_net::link::{self, InWaiting, Link, WINDOW, answer, link_to};
use cohort_net::wire::{Header, Kind};
use cohort_steal::TaskKind;
use core::ptr::{NonNull, null_mut};

/// Offers that are asked for together with one that a receive takes, and their bytes.
const NEAR_COUNT: u32 = 64;
const NEAR_BYTES: u64 = 64 << 10;

/// What the messages that are asked for so may cost beyond the window.
const AHEAD: u64 = WINDOW / 4;

/// Asks for the data of the offers that wait, the oldest first, as far as there is room for it.
pub(super) fn ask(claim: &mut Claim<'_>, peer: Peer) {
    let Ok(link) = link_to(claim, peer) else {
        return;
    };
    // SAFETY: links belong to the claim's holder; the list's element is in it.
    unsafe {
        while let Some(first) = NonNull::new(link.as_ref().waiting.first()) {
            if ask_for(claim, link, first, WINDOW).is_none() {
                return;
            }
        }
    }
}

/// The offers that wait next to one of the same peer.
pub(super) struct Near {
    before: *mut InWaiting,
    after: *mut InWaiting,
}

/// The neighbours of an offer that a receive takes.
///
/// # Safety
/// As for [`withdraw`].
pub(super) unsafe fn near(claim: &mut Claim<'_>, arrival: &mut Arrival) -> Near {
    let (mut before, mut after) = (null_mut(), null_mut());
    if let Data::Waiting = arrival.data
        && let Ok(link) = link_to(claim, arrival.peer)
    {
        // SAFETY: the caller's promise; what waits is in the link's list.
        unsafe {
            let waiting = &link.as_ref().waiting;
            before = waiting.previous(&raw mut arrival.waiting);
            after = waiting.next(&raw mut arrival.waiting);
        }
    }
    Near { before, after }
}

/// Asks for the data of offers next to one that a receive has taken, to both sides in turn: the program receives in
/// another order than the peer sends in, so the next receives are likely to take these. A bounded number of them, and
/// with a bounded cost beyond the window: one request for each would cost the program a round trip for each receive.
///
/// # Safety
/// The neighbours are offers of that peer that wait; nothing was withdrawn since they were looked for but the offer
/// between them.
pub(super) unsafe fn ask_near(claim: &mut Claim<'_>, peer: Peer, near: Near) {
    let Ok(link) = link_to(claim, peer) else {
        return;
    };
    let mut sides = [near.before, near.after];
    let mut bytes = 0;
    for turn in 0..NEAR_COUNT as usize {
        let side = match sides[turn % 2].is_null() {
            false => turn % 2,
            true => 1 - turn % 2,
        };
        let Some(offer) = NonNull::new(sides[side]) else {
            return;
        };
        // SAFETY: it is in the link's list, where each is the beginning of an arrival; links belong to the claim's
        // holder.
        unsafe {
            let waiting = &link.as_ref().waiting;
            sides[side] = match side {
                0 => waiting.previous(offer.as_ptr()),
                _ => waiting.next(offer.as_ptr()),
            };
            bytes += offer.cast::<Arrival>().as_ref().bytes;
            if bytes > NEAR_BYTES || ask_for(claim, link, offer, WINDOW + AHEAD).is_none() {
                return;
            }
        }
    }
}

/// Asks for the data of an offer that waits, if all that is kept of its peer costs at most `limit` with it. `None` if
/// not, or without memory: a later message that is taken tries again.
///
/// # Safety
/// It is in the list of the link, which is the claimed rank's.
unsafe fn ask_for(claim: &mut Claim<'_>, mut link: NonNull<Link>, offer: NonNull<InWaiting>, limit: u64) -> Option<()> {
    // SAFETY: links belong to the claim's holder; an element of the list is the beginning of an arrival that stays
    // where it is while it is there.
    unsafe {
        let mut arrival = offer.cast::<Arrival>();
        let cost = link::cost(arrival.as_ref().bytes);
        if link.as_ref().kept + cost > limit {
            return None;
        }
        if arrival.as_ref().bytes == 0 {
            let (id, peer) = (arrival.as_ref().id, arrival.as_ref().peer);
            answer(claim, peer, Header::new(Kind::Done, id));
            arrival.as_mut().data = Data::Stored(null_mut());
        } else {
            fetch(claim, arrival)?;
        }
        link.as_mut().waiting.remove(offer.as_ptr());
        link.as_mut().kept += cost;
    }
    Some(())
}

/// A message of `bytes` bytes that was kept for a peer is gone: offers of that peer may find room.
pub(super) fn release(claim: &mut Claim<'_>, peer: Peer, bytes: u64) {
    if let Ok(mut link) = link_to(claim, peer) {
        // SAFETY: links belong to the claim's holder.
        let link: &mut Link = unsafe { link.as_mut() };
        link.kept -= link::cost(bytes);
        if !link.waiting.first().is_null() {
            ask(claim, peer);
        }
    }
}

/// Asks for the data of a message that no receive has taken. `None` without memory: nothing was done.
///
/// # Safety
/// `arrival` is an offer of data that cannot be read, and stays where it is until it is taken (`receive::hand_over`).
unsafe fn fetch(claim: &mut Claim<'_>, arrival: NonNull<Arrival>) -> Option<()> {
    // SAFETY: the caller's promise; all that is used is fresh.
    unsafe {
        let bytes = arrival.as_ref().bytes;
        let block = claim.alloc(bytes as usize)?;
        let asked = Inbound::make(claim, arrival.as_ref(), bytes).and_then(|inbound| {
            (*inbound.as_ptr()).block = block.as_ptr();
            (*inbound.as_ptr()).arrival = arrival.as_ptr();
            let asked = Inbound::ask(inbound, claim);
            if asked.is_none() {
                hooks::over(claim, inbound.as_ref().mark);
                claim.free_local(inbound.cast());
            }
            asked.map(|()| inbound)
        });
        let Some(inbound) = asked else {
            claim.free_local(block);
            return None;
        };
        (*arrival.as_ptr()).data = Data::Coming(inbound);
    }
    claim.expect_more(TaskKind::Net);
    Some(())
}

/// Takes an arrival out of the list of offers that wait for room.
///
/// # Safety
/// It lies where it was stored, if it was.
pub(super) unsafe fn withdraw(claim: &mut Claim<'_>, arrival: &mut Arrival) {
    if let Data::Waiting = arrival.data
        && let Ok(mut link) = link_to(claim, arrival.peer)
    {
        arrival.data = Data::Offered;
        // SAFETY: the caller's promise; links belong to the claim's holder.
        unsafe { link.as_mut().waiting.remove(&raw mut arrival.waiting) };
    }
}
