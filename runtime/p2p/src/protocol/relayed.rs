//! Long messages that pass through a [relay](crate::relay) while their sender waits in its call.
//!
//! They are offers that carry the address of the relay as well. The receiver's own task takes the pieces from there,
//! and copies those itself that are late; a thief, or a progress thread, copies from the sender's buffer as ever.

use super::compared;
use super::eager::take_lines;
use crate::P2p;
use crate::operation::{Offer, Operation, Side, copy_guarded};
use crate::relay::{LONGEST, Pieces, Relay, SHORTEST, piece};
use cohort_core::claim::Claim;
use cohort_core::message::SendMode;
use cohort_core::rank::Rank;
use cohort_datatype::{self as datatype, Buffer};
use core::ptr::{NonNull, null_mut};

/// Whether a message is sent through a relay, where its sender waits for its end in the call that sends it.
///
/// Where ranks outnumber CPUs the sender's pieces would take the CPU of those that compute.
#[inline]
pub(crate) fn is_relayed(rank: &Rank, bytes: u64, mode: SendMode) -> bool {
    (SHORTEST..=LONGEST).contains(&bytes)
        && (mode == SendMode::Synchronous || !rank.node().is_eager(bytes))
        && !compared::is_short(rank, bytes, mode)
        && rank.polls_directly()
}

/// Gives the claimed rank's relay to a send that was not offered yet, if its data is one run and nobody has it.
///
/// # Safety
/// The rank waits for the end of the send in this call.
pub(crate) unsafe fn begin(
    claim: &mut Claim<'_>,
    send: *mut Operation,
    buffer: Buffer<'_>,
) -> *mut Relay {
    let heap = claim.heap();
    match buffer.contiguous() {
        Some(data) => claim
            .of::<P2p>()
            .sending
            .begin(heap, send.cast(), data, buffer.bytes()),
        None => null_mut(),
    }
}

/// Fills blocks of the message that the claimed rank is sending, if there is one. Returns the bytes copied.
#[inline]
pub(crate) fn fill(claim: &mut Claim<'_>) -> u64 {
    if !claim.of::<P2p>().sending.is_under_way() || !claim.is_by_owner() {
        return 0;
    }
    // SAFETY: the rank's own task, in a call; the one that began the send waits for its end, and then the relay is
    // nobody's any more.
    unsafe { claim.of::<P2p>().sending.fill() }
}

/// Whether the holder of a claim takes the pieces of an offer from its relay.
pub(crate) fn relay_of(claim: &Claim<'_>, offer: &Offer) -> Option<NonNull<Relay>> {
    NonNull::new(offer.relay).filter(|_| claim.is_by_owner() && claim.rank().polls_directly())
}

/// Copies a message of which `bytes` are received.
///
/// # Safety
/// As for [`copy_guarded`]; the relay is the offer's.
pub(crate) unsafe fn copy(
    claim: &mut Claim<'_>,
    offer: &Offer,
    receive: *mut Operation,
    relay: NonNull<Relay>,
    bytes: u64,
) -> Result<(), Side> {
    // SAFETY: the caller's promise. Our own task writes to our own buffer, so that needs no guard.
    unsafe {
        let mut pieces = Pieces::of(relay);
        while pieces.from() < bytes {
            let from = pieces.from();
            let length = piece(from, bytes);
            // The sender may wait for the rest of our own message in the same way.
            let block = pieces.next(|| {
                fill(claim);
            });
            match block {
                Some(block) => {
                    datatype::unpack((*receive).buffer(), from, block, length);
                    take_lines(block, length as usize);
                }
                None => copy_guarded(offer, receive, from, from + length)?,
            }
            pieces.took();
        }
    }
    Ok(())
}
