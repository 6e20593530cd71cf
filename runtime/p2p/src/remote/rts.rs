//! RTS messages, and how many of them a receiver has to remember.
//!
//! A receiver keeps a record of each RTS that no receive has taken. So a sender has at most [`RTS_MAX`] RTS messages
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
use cohort_core::record::RecordRef;
use cohort_core::subsystem::hooks;
use cohort_net::link::{self, Link, Unsent, line_up, link_to};
use cohort_net::wire::{Header, PacketKind, READABLE, SYNCHRONOUS};
use cohort_net::{Net, fail, kick};
use core::cell::Cell;

/// Offers to one peer that may wait for an answer, and those of a batch that it asks for.
const RTS_MAX: u32 = 4096;

/// Longest message that travels in packets when it is wanted, though it could be read. The receiver asks for the data
/// of such messages before a receive takes them, if it has room for them (`early.rs`).
const PACKETS_MAX: u64 = 64 << 10;

/// Sends to a peer in one context that are held, in their order.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) peer: Peer,
    /// Of the first one: the context, and the sender in it.
    envelope: Envelope,
    /// Whether the peer has asked for more of them.
    is_wanted: Cell<bool>,
    pub(super) sends: List<Outbound, IN_SENDS>,
    links: Links<Self>,
}

impl Linked<0> for Queue {
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

/// Offers a message, now or later.
///
/// # Safety
/// `outbound` was just made for the link, which is the claimed rank's, and nobody else knows it. In case of an error it
/// is unmade.
pub(super) unsafe fn rts(
    claim: &mut Claim<'_>,
    net: &Net,
    link: RecordRef<Link>,
    outbound: RecordRef<Outbound>,
    envelope: Envelope,
    mode: SendMode,
) -> Result<(), EngineError> {
    let header = traced::header(claim, PacketKind::Rts, envelope, outbound.bytes, outbound.name.get());
    outbound.envelope.set(envelope);
    outbound.message.set(header.message);
    outbound.is_synchronous.set(mode == SendMode::Synchronous);
    let is_behind = link.holds() && find(claim, link.peer, envelope.context).is_some();
    let offered = if is_behind || link.offered.get() > RTS_MAX {
        hold(claim, link, outbound)
    } else {
        send_rts(claim, net, link, outbound)
    };
    if offered.is_err() {
        // SAFETY: the caller's promise.
        unsafe { Outbound::unmake(outbound, claim) };
    }
    offered
}

/// Lines up the RTS of a send in the list of RTS messages.
fn send_rts(
    claim: &mut Claim<'_>,
    net: &Net,
    link: RecordRef<Link>,
    outbound: RecordRef<Outbound>,
) -> Result<(), EngineError> {
    let (endpoint, caller) = (claim.rank().id(), claim.caller());
    let (data, bytes) = (outbound.data, outbound.bytes);
    let mut header = Header::of_message(PacketKind::Rts, outbound.envelope.get(), bytes, outbound.name.get());
    header.message = outbound.message.get();
    if outbound.is_synchronous.get() {
        header.flags = SYNCHRONOUS;
    }
    let is_far = claim.rank().node().is_foreign(link.peer);
    if !data.is_null() && net.limits.transfer > 0 && bytes > net.eager_max.min(PACKETS_MAX) && !is_far {
        // Memory that cannot be exposed travels in packets.
        // SAFETY: by `Outbound::make`, the data is there until the send is over, which withdraws it.
        let exposed = unsafe { net.transport.expose(endpoint, caller, data.cast_mut(), bytes as usize) };
        if let Ok(region) = exposed {
            header.flags |= READABLE;
            header.region = region;
            outbound.region.set(Some(region));
        }
    }
    match Unsent::empty(claim, header) {
        Ok(packet) => {
            line_up(claim, link, packet);
            outbound.mark.set(hooks::under_way(claim));
            Ok(())
        }
        Err(error) => {
            if let Some(region) = outbound.region.take() {
                net.transport.withdraw(endpoint, caller, region);
            }
            Err(error)
        }
    }
}

/// The queue of a peer and a context.
fn find(claim: &mut Claim<'_>, peer: Peer, context: u32) -> Option<RecordRef<Queue>> {
    claim.of::<Remote>().queues.find(|queue| queue.peer == peer && queue.envelope.context == context)
}

/// Tells the peer that messages of a queue are held.
fn tell(claim: &mut Claim<'_>, peer: Peer, envelope: Envelope) {
    let header = Header::of_message(PacketKind::Held, envelope, 0, 0);
    link::answer(claim, peer, header);
}

/// Moves a send of which nobody has heard from the list of RTS messages to the end of its queue. In case of an error it
/// stays there.
#[cold]
fn hold(claim: &mut Claim<'_>, link: RecordRef<Link>, outbound: RecordRef<Outbound>) -> Result<(), EngineError> {
    let (peer, envelope) = (outbound.peer, outbound.envelope.get());
    let queue = match find(claim, peer, envelope.context) {
        Some(queue) => queue,
        None => {
            let fresh =
                Queue { peer, envelope, is_wanted: Cell::new(false), sends: List::empty(), links: Links::none() };
            let queue = RecordRef::make(claim, fresh).ok_or(EngineError::OutOfMemory)?;
            claim.of::<Remote>().queues.push(queue);
            tell(claim, peer, envelope);
            queue
        }
    };
    Outbound::leave_offered(outbound, claim);
    outbound.stage.set(Stage::Held);
    queue.sends.push(outbound);
    link.hold();
    Ok(())
}

/// The peer may want a message of a context that is held.
pub(super) fn wanted(claim: &mut Claim<'_>, peer: Peer, header: &Header) {
    if let Some(queue) = find(claim, peer, header.envelope().context) {
        queue.is_wanted.set(true);
    }
}

/// Offers sends that were held, as many as may be. Returns how many.
pub(super) fn release(claim: &mut Claim<'_>, net: &Net) -> u32 {
    let mut count = 0;
    let mut next = claim.of::<Remote>().queues.first();
    while let Some(queue) = next {
        next = claim.of::<Remote>().queues.next(queue);
        count += release_from(claim, net, queue);
    }
    count
}

/// [`release`] for one queue of the list, which ends when it is empty.
fn release_from(claim: &mut Claim<'_>, net: &Net, queue: RecordRef<Queue>) -> u32 {
    let (peer, envelope) = (queue.peer, queue.envelope);
    let Ok(link) = link_to(claim, peer) else {
        return 0;
    };
    let is_wanted = queue.is_wanted.take();
    let most = match is_wanted {
        true => RTS_MAX,
        false => RTS_MAX.saturating_sub(link.offered.get()),
    };
    let mut count = 0;
    while let Some(outbound) = queue.sends.first()
        && count < most
    {
        queue.sends.remove(outbound);
        link.release();
        Outbound::join_offered(outbound, claim);
        if send_rts(claim, net, link, outbound).is_err() {
            fail::no_memory(claim.rank(), peer);
        }
        count += 1;
    }
    if queue.sends.is_empty() {
        claim.of::<Remote>().queues.remove(queue);
        // SAFETY: it was in that list only, and nobody else knows it.
        unsafe { queue.free(claim) };
    } else if is_wanted {
        tell(claim, peer, envelope);
    }
    count
}

/// Takes back a send that is held. Whether it was.
fn cancel_held(claim: &mut Claim<'_>, request: RecordRef<Operation>) -> bool {
    let mut next = claim.of::<Remote>().queues.first();
    while let Some(queue) = next {
        // The queue ends when sends are released.
        if let Some(outbound) = queue.sends.find(|outbound| outbound.request.get() == Some(request)) {
            queue.sends.remove(outbound);
            if let Ok(link) = link_to(claim, outbound.peer) {
                link.release();
            }
            outbound.is_cancelled.set(true);
            Outbound::enter(outbound, claim, Stage::Over);
            return true;
        }
        next = claim.of::<Remote>().queues.next(queue);
    }
    false
}

/// Asks the receiver to forget a send (`MPI_Cancel`), unless it has answered already.
pub(crate) fn cancel(claim: &mut Claim<'_>, request: RecordRef<Operation>) {
    let found = claim.of::<Remote>().offered.find(|outbound| outbound.request.get() == Some(request));
    if let Some(outbound) = found {
        if !outbound.is_retracted.replace(true) {
            let header = Header::new(PacketKind::Retract, outbound.name.get());
            link::answer(claim, outbound.peer, header);
        }
    } else if !cancel_held(claim, request) {
        return;
    }
    kick(claim);
}
