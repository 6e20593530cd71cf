//! Offers that wait for room.
//!
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

use super::arrival::{Arrival, Data, Inbound};
use cohort_base::Peer;
use cohort_core::claim::Claim;
use cohort_core::subsystem::hooks;
use cohort_net::link::{self, Link, WINDOW, answer, link_to};
use cohort_net::wire::{Header, Kind};
use cohort_steal::TaskKind;
use core::ptr::{NonNull, null_mut};

/// Asks for the data of the offers that wait, the oldest first, as far as there is room for it.
pub(super) fn ask(claim: &mut Claim<'_>, peer: Peer) {
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
            } else if fetch(claim, arrival).is_none() {
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
