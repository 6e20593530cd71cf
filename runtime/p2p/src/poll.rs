//! Taking messages out of the rings.
//!
//! Messages are taken out only while receives are posted: else nothing could match, and a message that stays in its
//! ring is later delivered without being stored in between.

use crate::P2p;
use crate::matching::{Stored, Want};
use crate::operation::{CopyJob, JobRef, Operation};
use crate::outbox;
use crate::state::{leave_offers, outbox_to};

use crate::protocol::{self, Payload};
use crate::ring::{CELLS, Front, Outlet, PayloadKind};
use crate::state::unpost_receive;
use cohort_base::{LocalRank, Peer};
use cohort_core::Turn;
use cohort_core::claim::Claim;
use cohort_core::rank::Rank;
use cohort_core::record::RecordRef;

/// Messages that one turn takes out of the rings.
const MESSAGES_PER_TURN: u32 = 64;

/// Own rendezvous sends that one look for a job visits.
const OFFERS_PER_LOOK: u32 = 8;

/// Messages that a turn takes out of a ring, one behind the other, if their sender may be ahead of the rank.
const AHEAD: u32 = 8;

/// Looks in vain that receives make until they look no more.
const LOOKS: u8 = 64;

/// A message that did not fit in the rank's heap stays in its ring.
struct NoRoom;

/// Takes messages out of all rings, beginning with another one each time.
pub(crate) fn poll_rings(claim: &mut Claim<'_>, turn: &mut Turn) {
    let rank = claim.rank();
    let count = rank.shared::<P2p>().inbox.count();
    let mut budget = MESSAGES_PER_TURN;
    let mut place = claim.of::<P2p>().first_ring;
    for _ in 0..count {
        place = if place + 1 < count { place + 1 } else { 0 };
        let Some(sender) = rank.shared::<P2p>().inbox.sender(place) else {
            continue;
        };
        let Some(outlet) = rank.shared::<P2p>().inbox.outlet(sender) else {
            continue;
        };
        let behind = budget.saturating_sub(AHEAD);
        while let Some(front) = outlet.front() {
            match accept(claim, sender, front) {
                Ok(bytes) => turn.bytes += bytes,
                Err(NoRoom) => break,
            }
            turn.moved = true;
            budget -= 1;
            if budget == behind {
                note_many(claim, sender, &outlet);
            }
            if budget == 0 || claim.of::<P2p>().posted.is_empty() {
                claim.of::<P2p>().first_ring = place;
                return;
            }
        }
    }
    claim.of::<P2p>().first_ring = place;
}

/// Whether a short receive from one rank of the node, which begins and does not wait, lines up without a look into
/// that rank's ring. Then [`look_behind_post`] follows.
///
/// If the sender is about to write the message, a look takes the cache line away in the middle of it: both have to
/// fetch it once more, and what the rank sends next comes later. The message meets the receive in the rank's next turn,
/// or in that of a rank which waits and steals. Where the rank has many messages to receive and few to send
/// ([`note_many`]), what is there is done the quickest way. Where ranks share CPUs nobody writes at the same time.
#[inline(always)]
pub(crate) fn may_line_up(claim: &mut Claim<'_>) -> bool {
    let rank = claim.rank();
    claim.of::<P2p>().looks == 0 && rank.polls_directly() && rank.capabilities().steals()
}

/// Looks for the message of a receive that has lined up unseen, if its sender sleeps: that one would not steal. A
/// sender that goes to sleep announces it, passes its heavy barrier, and looks at this rank once more: it sees the
/// receive, or is seen here.
#[inline(always)]
pub(crate) fn look_behind_post(claim: &mut Claim<'_>, sender: LocalRank, receive: &Operation) {
    let rank = claim.rank();
    rank.node().barriers().light();
    if rank.node().rank(sender).park().is_parked()
        && let Some(outlet) = rank.shared::<P2p>().inbox.outlet(sender)
        && !outlet.is_empty()
    {
        pull_late(claim, sender, receive);
    }
}

#[cold]
fn pull_late(claim: &mut Claim<'_>, sender: LocalRank, receive: &Operation) {
    pull_for(claim, Some(Peer::local(sender)), receive);
}

/// A turn has taken many messages of this sender: receives look into rings from now on, unless the rank has sent as
/// many itself since the last time, or half as many.
#[cold]
fn note_many(claim: &mut Claim<'_>, sender: LocalRank, outlet: &Outlet<'_>) {
    let outbox = outbox_to(claim, sender);
    let sent = outbox.ring.get().map_or(0, |ring| outbox::sent_by(claim, ring));
    let (sent_before, taken_before) = outbox.at_many.replace((sent, outlet.taken()));
    let (sent, taken) = (sent - sent_before, outlet.taken() - taken_before);
    claim.of::<P2p>().looks = if sent * 2 < taken { LOOKS } else { 0 };
}

/// Whether no message is in a ring.
#[inline]
pub(crate) fn are_rings_empty(claim: &mut Claim<'_>) -> bool {
    let inbox = &claim.rank().shared::<P2p>().inbox;
    (0..inbox.count()).all(|place| {
        let outlet = inbox.sender(place).and_then(|sender| inbox.outlet(sender));
        outlet.is_none_or(|outlet| outlet.is_empty())
    })
}

/// Takes one message out of a ring: delivers it or stores it. Returns the bytes copied.
fn accept(claim: &mut Claim<'_>, sender: LocalRank, front: Front<'_>) -> Result<u64, NoRoom> {
    let payload = Payload::Ring(&front);
    let mut bytes = 0;
    let request = claim.of::<P2p>().posted.find(&front.header.envelope());
    // SAFETY: the message is taken here only, and then out of its ring. A posted request is pending, and ours once it
    // is out of the queue.
    unsafe {
        match request {
            None => store(claim, &payload)?,
            Some(request) if take(&payload) => {
                unpost_receive(claim, request);
                bytes = protocol::deliver(claim, &payload, request);
            }
            Some(_) => {}
        }
    }
    if front.header.kind == PayloadKind::Rts {
        claim.rank().shared::<P2p>().count_accepted(sender);
    }
    if front.pop() {
        outbox::made_room(claim.rank(), sender);
    }
    Ok(bytes)
}

/// Takes a matched message for good; `false` when it was an RTS that the sender has withdrawn,
/// which is dropped.
///
/// # Safety
/// The message was neither taken nor dropped before.
pub(crate) unsafe fn take(payload: &Payload<'_>) -> bool {
    let Some(rts) = payload.rts() else {
        return true;
    };
    let Some(request) = rts.request else {
        return true;
    };
    let taken = request.request.take_rts();
    if !taken {
        // SAFETY: the caller's promise.
        unsafe { Operation::drop_rts(request) };
    }
    taken
}

/// Stores a message that no posted receive takes.
fn store(claim: &mut Claim<'_>, payload: &Payload<'_>) -> Result<(), NoRoom> {
    if payload.header().kind == PayloadKind::Rts {
        // Nobody may ever look for those before it that were withdrawn.
        let _ = find_stored(claim, &Want::just(payload.header().envelope()));
    }
    let stored = Stored::make(claim, payload.header()).ok_or(NoRoom)?;
    let heap = claim.heap();
    // SAFETY: the block has room for the payload.
    unsafe { payload.read(Stored::payload(stored)) };
    claim.of::<P2p>().unexpected.insert(stored, heap);
    Ok(())
}

/// The oldest stored message that is wanted. Drops withdrawn ones on the way.
pub(crate) fn find_stored(claim: &mut Claim<'_>, want: &Want) -> Option<RecordRef<Stored>> {
    loop {
        let heap = claim.heap();
        let stored = claim.of::<P2p>().unexpected.find(want, heap)?;
        let sent = Payload::Stored(stored).rts().and_then(|rts| rts.request);
        let Some(withdrawn) = sent.filter(|sent| sent.request.is_withdrawn()) else {
            return Some(stored);
        };
        claim.of::<P2p>().unexpected.remove(stored);
        // SAFETY: a withdrawn one is dropped once, and nobody knows the message any more.
        unsafe {
            Operation::drop_rts(withdrawn);
            stored.free(claim);
        }
    }
}

/// Takes the messages of one sender, or of all, that are there out of the rings until `enough`.
pub fn pull(claim: &mut Claim<'_>, from: Option<Peer>, mut enough: impl FnMut(&mut Claim<'_>) -> bool) {
    let rank = claim.rank();
    if let Some(peer) = from {
        if let Some(sender) = rank.node().local(peer)
            && let Some(outlet) = rank.shared::<P2p>().inbox.outlet(sender)
        {
            pull_ring(claim, sender, &outlet, &mut enough);
        }
        return;
    }
    for place in 0..rank.shared::<P2p>().inbox.count() {
        let sender = rank.shared::<P2p>().inbox.sender(place);
        let outlet = sender.and_then(|sender| rank.shared::<P2p>().inbox.outlet(sender));
        if let (Some(sender), Some(outlet)) = (sender, outlet)
            && pull_ring(claim, sender, &outlet, &mut enough)
        {
            return;
        }
    }
}

/// Takes what the dead of this node have sent, which receives may wait for, out of their rings.
pub(crate) fn take_last_words(claim: &mut Claim<'_>) {
    for dead in claim.rank().node().failed() {
        if claim.of::<P2p>().posted.is_empty() {
            return;
        }
        pull(claim, Some(dead), |claim| claim.of::<P2p>().posted.is_empty());
    }
}

/// [`pull`] for one ring; `true` when it was enough. It takes what is there now at the most: a sender that goes on may
/// be faster than messages are stored.
fn pull_ring(
    claim: &mut Claim<'_>,
    sender: LocalRank,
    outlet: &Outlet<'_>,
    enough: &mut impl FnMut(&mut Claim<'_>) -> bool,
) -> bool {
    let end = outlet.taken() + CELLS;
    while let Some(front) = outlet.front() {
        if accept(claim, sender, front).is_err() {
            return false;
        }
        if enough(claim) {
            return true;
        }
        if outlet.taken() >= end {
            return false;
        }
    }
    false
}

/// The message at the front of a ring, which is the receive's that asked for it.
pub(crate) struct Due<'ring> {
    sender: LocalRank,
    front: Front<'ring>,
}

impl Due<'_> {
    /// The message.
    #[inline]
    pub(crate) fn payload(&self) -> Payload<'_> {
        Payload::Ring(&self.front)
    }

    /// Takes the delivered message out of its ring; `rank` is its receiver.
    #[inline]
    pub(crate) fn pop(self, rank: &Rank) {
        if self.front.pop() {
            outbox::made_room(rank, self.sender);
        }
    }
}

/// What is at the front of the rings.
pub(crate) enum AtFront<'ring> {
    /// A message that a receive which is made now would get at once: it is wanted, and by no posted receive.
    Due(Due<'ring>),
    /// Something else, which takes the slow path, as RTS messages do.
    Unclear,
    /// Nothing.
    Nothing,
}

/// Whether the message at the front of the only sender's ring, or of any ring, is due. The caller has seen that no
/// stored message is wanted.
#[inline]
pub(crate) fn due<'rank>(claim: &mut Claim<'rank>, from: Option<Peer>, want: &Want) -> AtFront<'rank> {
    let Some(peer) = from else {
        return due_of_any(claim, want);
    };
    let Some(sender) = claim.rank().node().local(peer) else {
        return AtFront::Unclear;
    };
    due_of(claim, sender, want)
}

/// [`due`] of one sender of the node.
#[inline]
fn due_of<'rank>(claim: &mut Claim<'rank>, sender: LocalRank, want: &Want) -> AtFront<'rank> {
    let Some(front) = claim.rank().shared::<P2p>().inbox.outlet(sender).and_then(|outlet| outlet.front()) else {
        return AtFront::Nothing;
    };
    let envelope = front.header.envelope();
    let is_due =
        front.header.kind.is_eager() && want.takes(&envelope) && claim.of::<P2p>().posted.find(&envelope).is_none();
    match is_due {
        true => AtFront::Due(Due { sender, front }),
        false => AtFront::Unclear,
    }
}

/// [`due`] of any sender of the node, beginning behind the one whose message was the last.
#[inline]
fn due_of_any<'rank>(claim: &mut Claim<'rank>, want: &Want) -> AtFront<'rank> {
    let inbox = &claim.rank().shared::<P2p>().inbox;
    let count = inbox.count();
    let mut place = claim.of::<P2p>().first_ring;
    let mut found = AtFront::Nothing;
    for _ in 0..count {
        place = if place + 1 < count { place + 1 } else { 0 };
        // One that is just coming has sent nothing yet that anybody knows of.
        let Some(sender) = inbox.sender(place) else {
            continue;
        };
        match due_of(claim, sender, want) {
            AtFront::Nothing => {}
            AtFront::Unclear => found = AtFront::Unclear,
            due @ AtFront::Due(_) => {
                claim.of::<P2p>().first_ring = place;
                return due;
            }
        }
    }
    found
}

/// Takes messages of the sender until `request`, a receive of the claimed rank, has left the posted queue.
pub fn pull_for(claim: &mut Claim<'_>, from: Option<Peer>, request: &Operation) {
    pull(claim, from, |_| !request.is_posted.get());
}

/// A job of one of the claimed rank's own sends. Forgets completed sends on the way.
#[inline]
pub(crate) fn job_of_own_send(claim: &mut Claim<'_>) -> Option<JobRef> {
    match claim.of::<P2p>().offered.is_empty() {
        true => None,
        false => job_of_offers(claim),
    }
}

fn job_of_offers(claim: &mut Claim<'_>) -> Option<JobRef> {
    // One who dies with a chunk would leave the message incomplete for ever: the receiver copies it all.
    let helps = !claim.rank().node().survives();
    let mut next = claim.of::<P2p>().offered.first();
    for _ in 0..OFFERS_PER_LOOK {
        let current = next?;
        next = claim.of::<P2p>().offered.next(current);
        if current.request.is_complete() {
            leave_offers(claim, current);
        } else if helps && let Some(job) = CopyJob::of_rts(&current) {
            return Some(job);
        }
    }
    None
}

#[cfg(test)]
mod tests;
