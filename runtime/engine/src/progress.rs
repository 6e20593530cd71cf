//! What a rank, or a thief for it, does to move its messages.
//!
//! A [`turn`] needs the rank's claim and is bounded. Messages are taken out of the rings
//! only while receives are posted: else nothing could match, and a message that stays in its
//! ring is later delivered without being stored in between.

use crate::claim::Claim;
use crate::coll::schedule::{self, ScheduleRef};
use crate::coll::wide::{self, ScriptRef};
use crate::matching::{Stored, Want};
use crate::net;
use crate::node::Node;
use crate::outbox;
use crate::partitioned::{self, Opened};
use crate::protocol::job::{Job, JobRef};
use crate::protocol::{self, Payload};
use crate::rank::Rank;
use crate::request::{self, Request, RequestRef};
use crate::ring::{Front, PayloadKind, Ring};
use crate::rma;
use cohort_base::{LocalRank, Peer};
use cohort_steal::TaskKind;
use cohort_steal::policy::{Outcome, Victims};
use core::ptr::NonNull;

/// Messages that one turn takes out of the rings.
const MESSAGES_PER_TURN: u32 = 64;

/// Pieces of work that a thief does before it looks at its own work again.
const CHUNKS_PER_STEAL: u32 = 4;

/// Own rendezvous sends that one look for a job visits.
const OFFERS_PER_LOOK: u32 = 8;

/// What a turn did.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Whether anything moved.
    pub(crate) moved: bool,
    /// Bytes that were copied.
    pub(crate) bytes: u64,
    /// Something to help with, outside of the claim.
    pub(crate) work: Option<Work>,
    /// Ready partitions to copy, outside of the claim.
    pub(crate) opened: Option<Opened>,
}

/// Work that is done outside of any claim, in pieces that several tasks share.
#[derive(Debug)]
pub(crate) enum Work {
    /// A long message.
    Message(JobRef),
    /// A nonblocking collective.
    Collective(ScheduleRef),
    /// One among nodes.
    Script(ScriptRef),
    /// A long operation on a window.
    Access(rma::CopyRef),
}

impl Work {
    /// Does up to `pieces` pieces. Returns the bytes moved.
    pub(crate) fn run(&self, pieces: u32) -> u64 {
        match self {
            Self::Message(job) => job.work(pieces),
            Self::Collective(schedule) => schedule.work(pieces),
            Self::Script(script) => script.work(pieces),
            Self::Access(copy) => copy.work(pieces),
        }
    }

    /// Whether there are pieces of a message that nobody has taken.
    pub(crate) fn is_left(&self) -> bool {
        match self {
            Self::Message(job) => job.is_left(),
            Self::Collective(_) | Self::Script(_) | Self::Access(_) => false,
        }
    }

    /// Whether this is a message whose sender is in a call, and copies itself.
    pub(crate) fn is_of_a_waiting_sender(&self) -> bool {
        match self {
            Self::Message(job) => job.sender_is_in_call(),
            Self::Collective(_) | Self::Script(_) | Self::Access(_) => false,
        }
    }
}

/// A message that did not fit in the rank's heap stays in its ring.
struct NoRoom;

/// Moves what can be moved of the claimed rank's messages.
#[inline]
pub(crate) fn turn(claim: &mut Claim<'_>) -> Turn {
    turn_of(claim, false)
}

/// [`turn`] of an owner that waits and has nothing else to do.
#[inline]
pub(crate) fn turn_of_waiter(claim: &mut Claim<'_>) -> Turn {
    let is_alone = !claim.rank().threads_multiple();
    turn_of(claim, is_alone)
}

#[inline]
fn turn_of(claim: &mut Claim<'_>, waits: bool) -> Turn {
    let net = net::turn_of_owner(claim, waits);
    let mut turn = turn_within_node(claim);
    turn.moved |= net.moved;
    turn.bytes += net.bytes;
    if !claim.state().away.first().is_null() {
        turn.moved |= partitioned::go_on(claim);
    }
    turn
}

/// The part of a turn that the network has nothing to do with.
#[inline]
fn turn_within_node(claim: &mut Claim<'_>) -> Turn {
    let mut turn = Turn::default();
    if claim.state().receivers_waited_for != 0 {
        turn.moved |= outbox::flush(claim) > 0;
    }
    if !claim.state().posted.is_empty() {
        poll_rings(claim, &mut turn);
    }
    if !claim.state().jobs.first().is_null() {
        turn.work = Job::next(claim).map(Work::Message);
    }
    if turn.work.is_none() && !claim.state().schedules.first().is_null() {
        turn.work = schedule::next(claim, false).map(Work::Collective);
    }
    if turn.work.is_none() && !claim.state().scripts.first().is_null() {
        turn.work = wide::next(claim, false).map(Work::Script);
        turn.moved |= turn.work.is_some();
    }
    if !claim.state().released.first().is_null() {
        request::free_released(claim);
    }
    if !claim.state().waiting_windows.first().is_null() {
        let (moved, copy) = rma::turn(claim);
        turn.moved |= moved;
        turn.work = turn.work.or(copy.map(Work::Access));
    }
    if !claim.state().awaiting.first().is_null() {
        turn.opened = partitioned::next_opened(claim);
    }
    turn
}

/// Takes messages out of all rings, beginning with another one each time.
fn poll_rings(claim: &mut Claim<'_>, turn: &mut Turn) {
    let rank = claim.rank();
    let count = rank.inbox().count();
    let mut budget = MESSAGES_PER_TURN;
    let mut place = claim.state().first_ring;
    for _ in 0..count {
        place = if place + 1 < count { place + 1 } else { 0 };
        let Some(sender) = rank.inbox().sender(place) else {
            continue;
        };
        let Some(ring) = rank.inbox().ring(sender) else {
            continue;
        };
        // SAFETY: we hold the claim, so we are the consumer.
        while let Some(front) = unsafe { ring.front() } {
            match accept(claim, sender, front) {
                Ok(bytes) => turn.bytes += bytes,
                Err(NoRoom) => break,
            }
            turn.moved = true;
            budget -= 1;
            if budget == 0 || claim.state().posted.is_empty() {
                claim.state().first_ring = place;
                return;
            }
        }
    }
    claim.state().first_ring = place;
}

/// Takes one message out of a ring: delivers it or stores it. Returns the bytes copied.
fn accept(claim: &mut Claim<'_>, sender: LocalRank, front: Front<'_>) -> Result<u64, NoRoom> {
    let payload = Payload::Ring(&front);
    let mut bytes = 0;
    let request = claim.state().posted.find(&front.header.envelope());
    // SAFETY: a posted request is valid and pending, and ours once it is out of the queue; the
    // payload of an offer is a valid request.
    unsafe {
        if request.is_null() {
            store(claim, &payload)?;
        } else if take(&payload) {
            claim.unpost_receive(request);
            bytes = protocol::deliver(claim, &payload, request);
        }
    }
    if front.header.kind == PayloadKind::Offer {
        claim.rank().count_accepted(sender);
    }
    if front.pop() {
        let rank = claim.rank();
        rank.node().rank(sender).notify(rank, true);
    }
    Ok(bytes)
}

/// Takes a matched message for good; `false` when it was an offer that the sender has withdrawn,
/// which is dropped.
///
/// # Safety
/// The message was neither taken nor dropped before.
pub(crate) unsafe fn take(payload: &Payload<'_>) -> bool {
    let Some(offer) = payload.offer() else {
        return true;
    };
    // SAFETY: an offer's request is valid until it is completed or dropped.
    unsafe {
        let taken = (*offer.request).take_offer();
        if !taken {
            Request::drop_offer(offer.request);
        }
        taken
    }
}

/// Stores a message that no posted receive takes.
fn store(claim: &mut Claim<'_>, payload: &Payload<'_>) -> Result<(), NoRoom> {
    let stored = Stored::make(claim, payload.header()).ok_or(NoRoom)?;
    let heap = claim.heap();
    // SAFETY: the block has room for the payload, and is in no queue.
    unsafe {
        payload.read(Stored::payload(stored.as_ptr()));
        claim.state().unexpected.insert(stored.as_ptr(), heap);
    }
    Ok(())
}

/// Takes messages of one sender, or of all, out of the rings until `enough`.
pub(crate) fn pull(
    claim: &mut Claim<'_>,
    from: Option<Peer>,
    mut enough: impl FnMut(&mut Claim<'_>) -> bool,
) {
    let rank = claim.rank();
    if let Some(peer) = from {
        if let Some(sender) = rank.node().local(peer)
            && let Some(ring) = rank.inbox().ring(sender)
        {
            pull_ring(claim, sender, ring, &mut enough);
        }
        return;
    }
    for place in 0..rank.inbox().count() {
        let sender = rank.inbox().sender(place);
        let ring = sender.and_then(|sender| rank.inbox().ring(sender));
        if let (Some(sender), Some(ring)) = (sender, ring)
            && pull_ring(claim, sender, ring, &mut enough)
        {
            return;
        }
    }
}

/// [`pull`] for one ring; `true` when it was enough.
fn pull_ring(
    claim: &mut Claim<'_>,
    sender: LocalRank,
    ring: &Ring,
    enough: &mut impl FnMut(&mut Claim<'_>) -> bool,
) -> bool {
    // SAFETY: we hold the claim, so we are the consumer.
    while let Some(front) = unsafe { ring.front() } {
        if accept(claim, sender, front).is_err() {
            return false;
        }
        if enough(claim) {
            return true;
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
            rank.node().rank(self.sender).notify(rank, true);
        }
    }
}

/// The message at the front of the only sender's ring, if a receive that is made now would get it at once: it is
/// wanted, and by no posted receive. The caller has seen that no stored message is wanted. `None` for an
/// offer, which takes the long way.
#[inline]
pub(crate) fn due<'rank>(
    claim: &mut Claim<'rank>,
    from: Option<Peer>,
    want: &Want,
) -> Option<Due<'rank>> {
    let rank = claim.rank();
    let sender = rank.node().local(from?)?;
    let ring = rank.inbox().ring(sender)?;
    // SAFETY: we hold the claim, so we are the consumer.
    let front = unsafe { ring.front() }?;
    let envelope = front.header.envelope();
    let is_due = front.header.kind != PayloadKind::Offer
        && want.takes(&envelope)
        && claim.state().posted.find(&envelope).is_null();
    is_due.then_some(Due { sender, front })
}

/// Takes messages of the sender until `request` has left the posted queue.
///
/// # Safety
/// `request` is a receive of the claimed rank that is not released.
pub(crate) unsafe fn pull_for(claim: &mut Claim<'_>, from: Option<Peer>, request: *mut Request) {
    // SAFETY: the caller's promise.
    pull(claim, from, |_| unsafe { !(*request).is_posted });
}

/// Work that only the claimed rank itself, or its polling thread, looks for: that of its own sends and,
/// for the owner, of collectives with a user's operation.
pub(crate) fn own_work(claim: &mut Claim<'_>, by_owner: bool) -> Option<Work> {
    if let Some(job) = job_of_own_send(claim) {
        return Some(Work::Message(job));
    }
    if !by_owner {
        return None;
    }
    wide::free_ended(claim);
    if !claim.state().scripts.first().is_null()
        && let Some(script) = wide::next(claim, true)
    {
        return Some(Work::Script(script));
    }
    if claim.state().schedules.first().is_null() {
        return None;
    }
    schedule::next(claim, true).map(Work::Collective)
}

/// A job of one of the claimed rank's own sends. Forgets completed sends on the way.
fn job_of_own_send(claim: &mut Claim<'_>) -> Option<JobRef> {
    let mut request = claim.state().offers.first();
    for _ in 0..OFFERS_PER_LOOK {
        let current = NonNull::new(request)?;
        // SAFETY: elements of the list are valid; the next one is taken first.
        unsafe {
            request = claim.state().offers.next(request);
            if RequestRef(current).is_complete() {
                Request::leave_offers(current.as_ptr(), claim);
            } else if let Some(job) = Job::of_offer(current.as_ptr()) {
                return Some(job);
            }
        }
    }
    None
}

/// The ranks of a node as victims of one thief, the rank `id`.
#[derive(Debug)]
pub(crate) struct Thief {
    node: &'static Node,
    id: LocalRank,
}

impl Thief {
    pub(crate) fn of(rank: &Rank) -> Self {
        Self {
            node: rank.node(),
            id: rank.id(),
        }
    }
}

impl Victims for Thief {
    fn count(&self) -> u32 {
        self.node.size()
    }

    #[inline]
    fn is_available(&self, rank: LocalRank, kind: TaskKind) -> bool {
        self.node.rank(rank).expected().is_raised(kind)
    }

    fn try_progress(&self, rank: LocalRank, kind: TaskKind) -> Outcome {
        match kind {
            TaskKind::Shm => steal_from(self.node.rank(rank), self.id),
            TaskKind::Net => steal_network(self.node.rank(rank), self.id),
        }
    }
}

/// One look at a victim's network, and at what was waiting for its messages.
pub(crate) fn steal_network(victim: &Rank, thief: LocalRank) -> Outcome {
    let Some(net) = victim.node().net() else {
        return Outcome::Idle;
    };
    let Some(mut claim) = victim.try_steal(thief) else {
        return Outcome::Busy;
    };
    let turn = net::turn(&mut claim, net, thief);
    let script = match claim.state().scripts.first().is_null() {
        true => None,
        false => wide::next(&mut claim, false),
    };
    if let Some(script) = script {
        drop(claim);
        let bytes = turn.bytes + script.work(CHUNKS_PER_STEAL);
        Outcome::Progressed { bytes }
    } else if turn.moved {
        let bytes = turn.bytes;
        Outcome::Progressed { bytes }
    } else if claim.state().net.is_stalled() {
        // Worth another try soon, though no event will tell.
        Outcome::Busy
    } else {
        Outcome::Idle
    }
}

/// One bounded piece of a victim's progress within the node.
fn steal_from(victim: &Rank, thief: LocalRank) -> Outcome {
    let Some(mut claim) = victim.try_steal(thief) else {
        return Outcome::Busy;
    };
    let turn = turn_within_node(&mut claim);
    drop(claim);
    let opened = turn.opened.map_or(0, Opened::work);
    let helped = opened + turn.work.map_or(0, |work| work.run(CHUNKS_PER_STEAL));
    if turn.moved || helped > 0 {
        let bytes = turn.bytes + helped;
        Outcome::Progressed { bytes }
    } else {
        Outcome::Idle
    }
}
