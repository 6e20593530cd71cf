//! Messages between nodes.
//!
//! The network is the first thing that a waiting rank takes off a computing one (Daps), so all of this runs
//! under a rank's claim, by its owner or by a thief. Within a node nothing here is used.
//!
//! | module | what it holds |
//! |---|---|
//! | `wire` | what a packet says |
//! | `link` | packets to one peer: their order, and how many messages may be on their way |
//! | `send`, `receive` | the two ends of a message |
//! | `note` | packets of windows |
//! | `watch` | who watches the network while all ranks sleep |
//! | `close` | the end of a rank's use of the network |
//! | `fail` | the end of a job whose network has failed |
//!
//! Messages from other nodes go through the same queues as those of this one (`matching.rs`), so wildcards
//! need nothing special. Events are handled in two steps, because a transport may not be called
//! while it hands them out: [`turn`] polls and changes the state, then [`settle`] sends what has come of it.

mod close;
mod fail;
mod link;
mod note;
mod receive;
mod send;
mod watch;
mod wire;

pub(crate) use close::{close, open};
pub(crate) use link::Link;
pub(crate) use note::{Note, post_note, room_of_notes};
pub(crate) use receive::{Arrival, deliver, header};
pub(crate) use send::{cancel, isend, isend_owned};
pub(crate) use watch::{hand_over, sleep};

use crate::claim::Claim;
use crate::list::List;
use crate::node::Node;
use crate::rma;
use cohort_base::sync::atomic::AtomicU32;
use cohort_base::{LocalRank, Peer, WorldRank};
use cohort_fabric::{Budget, Event, Limits, Transport};
use cohort_steal::TaskKind;
use core::ptr::NonNull;
use link::{IN_BUSY, Outgoing};
use receive::{IN_READING, Inbound, PIECE};
use send::{IN_SENDS, Outbound};
use wire::{Header, Kind};

/// How long a turn looks at the network if its rank waits: alone on its node, or not.
const LOOKS_ALONE: u32 = 16;
const LOOKS_AMONG_OTHERS: u32 = 4;

/// Events that one turn handles.
const EVENTS_PER_TURN: u32 = 64;

/// Times that one turn goes on lining up and sending.
const ROUNDS_PER_TURN: u32 = 4;

/// Turns of an owner that expects nothing from the network between two looks at it.
const TURNS_PER_LOOK: u32 = 16;

/// The network of a node.
pub(crate) struct Net {
    transport: &'static dyn Transport,
    limits: Limits,
    /// The longest message that travels with its data.
    eager_max: u64,
    /// The rank that watches the network, plus one; 0 if none does.
    watcher: AtomicU32,
    /// Watches in a row that ended because of events of which nobody found any.
    fruitless: AtomicU32,
}

impl Net {
    pub(crate) fn new(transport: &'static dyn Transport, eager_max: usize) -> Self {
        let limits = transport.limits();
        Self {
            transport,
            limits,
            eager_max: eager_max.min(limits.packet - Header::BYTES) as u64,
            watcher: AtomicU32::new(0),
            fruitless: AtomicU32::new(0),
        }
    }
}

/// What one rank has under way with remote peers.
#[derive(Debug)]
pub(crate) struct NetState {
    /// One entry for each remote peer, by its number less the node's size; null before the first packet.
    links: *mut *mut Link,
    /// Links with packets that wait.
    busy: List<Link, IN_BUSY>,
    /// Sends by their stage.
    offered: List<Outbound, IN_SENDS>,
    streaming: List<Outbound, IN_SENDS>,
    over: List<Outbound, IN_SENDS>,
    /// Receives that read their data.
    reading: List<Inbound, IN_READING>,
    /// Whether an event is being handled, so that the transport must not be called.
    is_polling: bool,
    /// Whether the rank has said goodbye.
    is_closing: bool,
    turns: u32,
    /// The next lane of partitioned sends.
    lanes: u32,
}

impl NetState {
    /// The state of a new rank, over a zeroed table with an entry for each remote peer.
    pub(crate) const fn new(links: *mut *mut Link) -> Self {
        Self {
            links,
            busy: List::EMPTY,
            offered: List::EMPTY,
            streaming: List::EMPTY,
            over: List::EMPTY,
            reading: List::EMPTY,
            is_polling: false,
            is_closing: false,
            turns: 0,
            lanes: 0,
        }
    }

    /// The place of the link to a remote peer.
    fn link(&mut self, node: &Node, peer: Peer) -> *mut *mut Link {
        let index = peer.index().checked_sub(node.size());
        let index = index.filter(|_| peer.index() < node.world_size());
        // SAFETY: the table has an entry for each remote peer.
        unsafe { self.links.add(index.expect("a remote peer") as usize) }
    }

    /// Takes consecutive lanes for a partitioned send; returns the first.
    pub(crate) fn take_lanes(&mut self, count: u32) -> u32 {
        let first = self.lanes;
        self.lanes = first.wrapping_add(count);
        first
    }

    /// Whether something waits for the transport to have room, of which no event tells.
    pub(crate) fn is_stalled(&self) -> bool {
        let reads_wait = self.reading.find(|inbound| {
            // SAFETY: elements of the list are valid.
            unsafe { (*inbound).waits_for_room() }
        });
        !self.busy.first().is_null() || !reads_wait.is_null()
    }

    /// Whether an owner's turn looks at the network: always when it expects something, else now and then.
    fn is_due(&mut self, expects: bool) -> bool {
        self.turns = self.turns.wrapping_add(1);
        expects || self.turns.is_multiple_of(TURNS_PER_LOOK)
    }
}

/// What a turn did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NetTurn {
    /// Whether anything moved.
    pub(crate) moved: bool,
    /// Bytes that came.
    pub(crate) bytes: u64,
}

/// The network's part of an owner's turn; a rank that waits looks longer for what it expects.
#[inline]
pub(crate) fn turn_of_owner(claim: &mut Claim<'_>, waits: bool) -> NetTurn {
    let Some(net) = claim.rank().node().net() else {
        return NetTurn::default();
    };
    let id = claim.rank().id();
    let expects = claim.expects(TaskKind::Net) || net.transport.owes(id);
    if !claim.state().net.is_due(expects) {
        return NetTurn::default();
    }
    let looks = match claim.rank().node().size() {
        _ if !(waits && expects) => 1,
        1 => LOOKS_ALONE,
        _ => LOOKS_AMONG_OTHERS,
    };
    turn_with(claim, net, id, looks)
}

/// Takes what has arrived for the claimed rank, and sends what waits. `caller` is the rank whose task this is.
pub(crate) fn turn(claim: &mut Claim<'_>, net: &Net, caller: LocalRank) -> NetTurn {
    turn_with(claim, net, caller, 1)
}

/// [`turn`] that looks several times for something that has arrived.
fn turn_with(claim: &mut Claim<'_>, net: &Net, caller: LocalRank, looks: u32) -> NetTurn {
    let mut bytes = 0;
    let endpoint = claim.rank().id();
    claim.state().net.is_polling = true;
    let budget = Budget {
        events: EVENTS_PER_TURN,
        looks,
    };
    let events = net.transport.poll(endpoint, caller, budget, &mut |event| {
        bytes += handle(claim, event);
    });
    claim.state().net.is_polling = false;
    let moved = settle(claim, net, caller);
    // A sleeping owner may wait for any change (a probe for a message, the end for goodbyes), or has to
    // poll for itself.
    if events > 0 || net.transport.owes(endpoint) {
        claim.rank().wake();
    }
    NetTurn {
        moved: moved || events > 0,
        bytes,
    }
}

/// After a change of the state outside of a turn: sends what has come of it, unless an event is being handled.
pub(crate) fn kick(claim: &mut Claim<'_>) {
    if let Some(net) = claim.rank().node().net()
        && !claim.state().net.is_polling
    {
        settle(claim, net, claim.caller());
        if !claim.is_by_owner() {
            leave_to_owner(claim, net);
        }
    }
}

/// Has the claimed rank's connection to a remote peer made, if there is none: by a packet that says nothing. Calls by thieves are to
/// find the connections that they use. Nothing is sent before the next [`kick`].
pub(crate) fn greet(claim: &mut Claim<'_>, peer: Peer) {
    let node = claim.rank().node();
    if node.net().is_none() || node.local(peer).is_some() {
        return;
    }
    let place = claim.state().net.link(node, peer);
    // SAFETY: the place belongs to the claim's holder.
    if unsafe { (*place).is_null() } {
        link::answer(claim, peer, Header::new(Kind::Credit, 0));
    }
}

/// Whether the claimed rank has exchanged packets with a remote peer.
#[cfg(test)]
pub(crate) fn is_acquainted(claim: &mut Claim<'_>, peer: Peer) -> bool {
    let node = claim.rank().node();
    let place = claim.state().net.link(node, peer);
    // SAFETY: the place belongs to the claim's holder.
    unsafe { !(*place).is_null() }
}

/// After a task that is not the owner's has sent: what it may not send itself is the owner's to do, if that waits.
#[cold]
fn leave_to_owner(claim: &mut Claim<'_>, net: &Net) {
    if net.transport.owes(claim.rank().id()) || claim.state().net.is_stalled() {
        claim.rank().wake();
    }
}

/// Sends packets, starts reads and completes sends, as far as the transport goes along. Says whether
/// anything moved.
fn settle(claim: &mut Claim<'_>, net: &Net, caller: LocalRank) -> bool {
    let mut moved = 0;
    for _ in 0..ROUNDS_PER_TURN {
        send::stream(claim, net);
        let mut now = receive::read_more(claim, net, caller);
        if !claim.state().net.busy.first().is_null() {
            now += link::flush(claim, caller);
        }
        now += send::complete_over(claim, net, caller);
        moved += now;
        if now == 0 {
            break;
        }
    }
    moved > 0
}

/// Handles one event. Returns the bytes that came into a user's buffer.
fn handle(claim: &mut Claim<'_>, event: Event<'_>) -> u64 {
    match event {
        Event::Packet { from, bytes } => packet(claim, from, bytes),
        // SAFETY: a token is that of an operation of this endpoint, which ends once.
        Event::Completed(token) if token & PIECE != 0 => unsafe {
            receive::read_complete(claim, token)
        },
        Event::Completed(token) => {
            packet_done(claim, token, None);
            0
        }
        // SAFETY: as above.
        Event::Failed { token, code } if token & PIECE != 0 => unsafe {
            receive::read_failed(claim, token, code)
        },
        Event::Failed { token, code } => {
            packet_done(claim, token, Some(code));
            0
        }
        Event::Lost { rank, code } => {
            let node = claim.rank().node();
            if rank < node.world_size() && node.local(node.peer(rank)).is_none() {
                fail::lost(claim, node.peer(rank), code);
            }
            0
        }
    }
}

/// The transport has done with a packet, or failed to send it.
fn packet_done(claim: &mut Claim<'_>, token: u64, failure: Option<i32>) {
    let packet = core::ptr::with_exposed_provenance_mut::<Outgoing>(token as usize);
    let Some(packet) = NonNull::new(packet) else {
        return;
    };
    // SAFETY: the token is the address of a packet that was pending, and ends once; its link exists.
    unsafe {
        let peer = packet.as_ref().peer;
        if let Some(code) = failure {
            fail::lost(claim, peer, code);
        }
        let node = claim.rank().node();
        let link = *claim.state().net.link(node, peer);
        (*link).in_flight -= 1;
        claim.expect_less(TaskKind::Net);
        Outgoing::left(packet, claim);
    }
}

/// Handles one packet. Returns the bytes that came into a user's buffer.
fn packet(claim: &mut Claim<'_>, from: WorldRank, bytes: &[u8]) -> u64 {
    let node = claim.rank().node();
    if from >= node.world_size() || node.local(node.peer(from)).is_some() {
        return 0;
    }
    let peer = node.peer(from);
    let Ok(mut link) = link::link_to(claim, peer) else {
        fail::no_memory(claim.rank(), peer);
    };
    let Some((header, body)) = Header::split(bytes) else {
        fail::nonsense(claim.rank(), peer);
    };
    // SAFETY: links belong to the claim's holder; the peer answers operations of this rank, each once.
    unsafe {
        link.as_mut().give_window(u64::from(header.credit));
        link.as_mut().is_closed = false;
        match header.kind() {
            Some(Kind::Eager) if body.len() as u64 == header.bytes => {
                return receive::arrive(claim, peer, &header, Some(body));
            }
            Some(Kind::Offer) => return receive::arrive(claim, peer, &header, None),
            Some(Kind::Data) => return receive::data(claim, &header, body),
            Some(Kind::Clear) => send::cleared(claim, &header),
            Some(Kind::Done) => send::done(claim, &header),
            Some(Kind::Retract) => receive::retract(claim, peer, header.id),
            Some(Kind::Retracted) => send::retracted(claim, &header),
            Some(Kind::Credit) => {}
            Some(Kind::Goodbye) => link.as_mut().is_closed = true,
            Some(Kind::Window) => return rma::arrive(claim, peer, &Note::of(&header), body),
            Some(Kind::Eager) | None => fail::nonsense(claim.rank(), peer),
        }
    }
    0
}

#[cfg(test)]
pub(crate) mod tests;
