//! Offers, and how many of them a receiver has to remember.
//!
//! A receiver keeps a record of each offer that no receive has taken. So a sender has at most [`OFFERS_MAX`] offers
//! without an answer at a peer. Further sends are *held*: they wait here, and the peer is told that messages of that
//! context are. They are offered when others were answered, in their order. But a receive may want one of them first,
//! whatever its tag. Then the peer says so (`held.rs`), and gets another batch of the context's, however many are
//! offered: only a program that looks for what comes last makes the receiver remember more.
//!
//! Messages of one context stay in order: while some of it are held, so is each further one, and none travels with its
//! data ([`Link::hold`]). Those of other contexts may overtake them.

use super::outbound::{IN_SENDS, Outbound, Stage};
use super::{Remote, traced};
use crate::operation::Operation;
use cohort_base::Peer;
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::list::{Linked, Links, List};
use cohort_core::message::{Envelope, SendMode};
use cohort_core::subsystem::hooks;
use cohort_net::link::{self, Link, Outgoing, line_up, link_to};
use cohort_net::wire::{Header, Kind, READABLE, SYNCHRONOUS};
use cohort_net::{Net, fail, kick};
use core::mem::size_of;
use core::ptr::NonNull;

/// Offers to one peer that may wait for an answer, and those of a batch that it asks for.
const OFFERS_MAX: u32 = 4096;

/// Sends to a peer in one context that are held, in their order.
#[derive(Debug)]
pub(super) struct Queue {
    peer: Peer,
    /// Of the first one: the context, and the sender in it.
    envelope: Envelope,
    /// Whether the peer has asked for more of them.
    is_wanted: bool,
    sends: List<Outbound, IN_SENDS>,
    links: Links<Self>,
}

impl Linked<0> for Queue {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).links }
    }
}

/// Offers a message, now or later; on failure the send is unmade.
///
/// # Safety
/// Link and `outbound` are the claimed rank's.
pub(super) unsafe fn offer(
    claim: &mut Claim<'_>,
    net: &Net,
    link: NonNull<Link>,
    outbound: *mut Outbound,
    envelope: Envelope,
    mode: SendMode,
) -> Result<(), EngineError> {
    // SAFETY: the caller's promise.
    unsafe {
        let outbound = NonNull::new_unchecked(outbound);
        let this = outbound.as_ptr();
        let header = traced::header(claim, Kind::Offer, envelope, (*this).bytes, (*this).name);
        (*this).envelope = envelope;
        (*this).message = header.message;
        (*this).is_synchronous = mode == SendMode::Synchronous;
        let is_behind = link.as_ref().holds() && !find(claim, link.as_ref().peer, envelope.context).is_null();
        let offered = if is_behind || link.as_ref().offered > OFFERS_MAX {
            hold(claim, link, outbound)
        } else {
            send_offer(claim, net, link, outbound)
        };
        if offered.is_err() {
            Outbound::unmake(outbound, claim);
        }
        offered
    }
}

/// Lines up the offer of a send in the list of offers.
///
/// # Safety
/// As for [`offer`].
unsafe fn send_offer(
    claim: &mut Claim<'_>,
    net: &Net,
    link: NonNull<Link>,
    outbound: NonNull<Outbound>,
) -> Result<(), EngineError> {
    let this = outbound.as_ptr();
    // SAFETY: the caller's promise.
    unsafe {
        let (endpoint, caller) = (claim.rank().id(), claim.caller());
        let (data, bytes) = ((*this).data, (*this).bytes);
        let mut header = Header::of_message(Kind::Offer, (*this).envelope, bytes, (*this).name);
        header.message = (*this).message;
        if (*this).is_synchronous {
            header.flags = SYNCHRONOUS;
        }
        if !data.is_null() && net.limits.transfer > 0 && bytes > net.eager_max {
            // Memory that cannot be exposed travels in packets.
            let exposed = net.transport.expose(endpoint, caller, data.cast_mut(), bytes as usize);
            if let Ok(region) = exposed {
                header.flags |= READABLE;
                header.region = region;
                (*this).region = Some(region);
            }
        }
        match Outgoing::with_room(claim, header, 0) {
            Ok((packet, _)) => {
                line_up(claim, link, packet);
                (*this).mark = hooks::under_way(claim);
                Ok(())
            }
            Err(error) => {
                if let Some(region) = (*this).region.take() {
                    net.transport.withdraw(endpoint, caller, region);
                }
                Err(error)
            }
        }
    }
}

/// The queue of a peer and a context, or null.
fn find(claim: &mut Claim<'_>, peer: Peer, context: u32) -> *mut Queue {
    claim.of::<Remote>().queues.find(|queue| {
        // SAFETY: elements of the list are valid.
        unsafe { (*queue).peer == peer && (*queue).envelope.context == context }
    })
}

/// Tells the peer that messages of a queue are held.
fn tell(claim: &mut Claim<'_>, peer: Peer, envelope: Envelope) {
    let header = Header::of_message(Kind::Held, envelope, 0, 0);
    link::answer(claim, peer, header);
}

/// Moves a send from the list of offers to the end of its queue. In case of an error it stays there.
///
/// # Safety
/// As for [`offer`]; nobody has heard of the send.
#[cold]
unsafe fn hold(claim: &mut Claim<'_>, mut link: NonNull<Link>, outbound: NonNull<Outbound>) -> Result<(), EngineError> {
    // SAFETY: the caller's promise; elements of lists are valid.
    unsafe {
        let (peer, envelope) = (outbound.as_ref().peer, outbound.as_ref().envelope);
        let mut queue = find(claim, peer, envelope.context);
        if queue.is_null() {
            let block = claim.alloc(size_of::<Queue>());
            queue = block.ok_or(EngineError::OutOfMemory)?.cast().as_ptr();
            queue.write(Queue { peer, envelope, is_wanted: false, sends: List::EMPTY, links: Links::NONE });
            claim.of::<Remote>().queues.push(queue);
            tell(claim, peer, envelope);
        }
        Outbound::leave_offered(outbound, claim);
        (*outbound.as_ptr()).stage = Stage::Held;
        (*queue).sends.push(outbound.as_ptr());
        link.as_mut().hold();
    }
    Ok(())
}

/// The peer may want a message of a context that is held.
pub(super) fn wanted(claim: &mut Claim<'_>, peer: Peer, header: &Header) {
    let queue = find(claim, peer, header.envelope().context);
    // SAFETY: elements of the list are valid.
    if let Some(queue) = unsafe { queue.as_mut() } {
        queue.is_wanted = true;
    }
}

/// Offers sends that were held, as many as may be. Returns how many.
pub(super) fn release(claim: &mut Claim<'_>, net: &Net) -> u32 {
    let mut count = 0;
    let mut next = claim.of::<Remote>().queues.first();
    while let Some(queue) = NonNull::new(next) {
        // SAFETY: elements of the list are valid; the next one is taken first.
        unsafe {
            next = claim.of::<Remote>().queues.next(next);
            count += release_from(claim, net, queue);
        }
    }
    count
}

/// [`release`] for one queue, which ends when it is empty.
///
/// # Safety
/// It is in the list of the claimed rank.
unsafe fn release_from(claim: &mut Claim<'_>, net: &Net, mut queue: NonNull<Queue>) -> u32 {
    // SAFETY: the caller's promise; links and sends belong to the claim's holder.
    unsafe {
        let (peer, envelope) = (queue.as_ref().peer, queue.as_ref().envelope);
        let Ok(mut link) = link_to(claim, peer) else {
            return 0;
        };
        let is_wanted = core::mem::take(&mut queue.as_mut().is_wanted);
        let most = match is_wanted {
            true => OFFERS_MAX,
            false => OFFERS_MAX.saturating_sub(link.as_ref().offered),
        };
        let mut count = 0;
        while let Some(outbound) = NonNull::new(queue.as_ref().sends.first())
            && count < most
        {
            queue.as_mut().sends.remove(outbound.as_ptr());
            link.as_mut().release();
            Outbound::join_offered(outbound, claim);
            if send_offer(claim, net, link, outbound).is_err() {
                fail::no_memory(claim.rank(), peer);
            }
            count += 1;
        }
        if queue.as_ref().sends.first().is_null() {
            claim.of::<Remote>().queues.remove(queue.as_ptr());
            claim.free_local(queue.cast());
        } else if is_wanted {
            tell(claim, peer, envelope);
        }
        count
    }
}

/// Takes back a send that is held. Whether it was.
fn cancel_held(claim: &mut Claim<'_>, request: *mut Operation) -> bool {
    let mut next = claim.of::<Remote>().queues.first();
    while let Some(mut queue) = NonNull::new(next) {
        // SAFETY: elements of lists are valid; the queue ends when sends are released.
        unsafe {
            let sends = &mut queue.as_mut().sends;
            let found = NonNull::new(sends.find(|outbound| (*outbound).request == request));
            if let Some(outbound) = found {
                sends.remove(outbound.as_ptr());
                if let Ok(mut link) = link_to(claim, outbound.as_ref().peer) {
                    link.as_mut().release();
                }
                (*outbound.as_ptr()).is_cancelled = true;
                Outbound::enter(outbound, claim, Stage::Over);
                return true;
            }
            next = claim.of::<Remote>().queues.next(next);
        }
    }
    false
}

/// Asks the receiver to forget a send (`MPI_Cancel`), unless it has answered already.
pub(crate) fn cancel(claim: &mut Claim<'_>, request: *mut Operation) {
    let offered = &claim.of::<Remote>().offered;
    // SAFETY: elements of the list are valid.
    let found = offered.find(|outbound| unsafe { (*outbound).request == request });
    if !found.is_null() {
        // SAFETY: as above.
        unsafe {
            if !(*found).is_retracted {
                (*found).is_retracted = true;
                let header = Header::new(Kind::Retract, (*found).name);
                link::answer(claim, (*found).peer, header);
            }
        }
    } else if !cancel_held(claim, request) {
        return;
    }
    kick(claim);
}
