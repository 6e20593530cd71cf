//! Packets between nodes.
//!
//! The network is the first thing that a waiting rank takes off a computing one (Daps), so all of this runs
//! under a rank's claim, by its owner or by a thief. Within a node nothing here is used.
//!
//! | module | what it holds |
//! |---|---|
//! | [`wire`] | what a packet says |
//! | [`link`] | packets to one peer: their order, and how many messages may be on their way |
//! | [`names`] | names of operations, by which peers answer them |
//! | `table` | the links of one rank, by peer |
//! | `receiver` | the subsystems above, which packets of messages and windows are for |
//! | `note` | packets of windows |
//! | [`calls`] | words at ports and about published names |
//! | `watch` | who watches the network while all ranks sleep |
//! | [`outside`] | connections with other jobs, which open while ranks run |
//! | `close` | the end of a rank's use of the network |
//! | [`fail`] | the end of a job whose network has failed |
//!
//! Events are handled in two steps, because a transport may not be called
//! while it hands them out: [`turn`](fn@turn) polls and changes the state, then `settle` sends what has come of it.
//!
//! Nothing of it exists under `--cfg loom`: models have no network.
#![cfg(not(loom))]
#![no_std]

#[cfg(test)]
extern crate std;

pub mod calls;
mod close;
pub mod fail;
pub mod link;
pub mod names;
mod note;
pub mod outside;
mod receiver;
mod table;
pub mod watch;
pub mod wire;

#[doc(hidden)]
pub use cohort_arch::hidden;
pub use note::{Note, post_note, room_of_notes};
pub use receiver::{Receiver, hooks};
#[doc(hidden)]
pub use {cohort_base::LocalRank, cohort_base::Peer, cohort_core::claim::Claim, cohort_fabric::Place};

use calls::Calls;
use cohort_base::WorldRank;
use cohort_base::lock::FutexOnce;
use cohort_base::picture::{Fact, Told};
use cohort_base::sync::atomic::{AtomicBool, AtomicU32};
use cohort_bridge::Bridge;
use cohort_core::list::List;
use cohort_core::memory::{Cursor, Plan};
use cohort_core::node::Node;
use cohort_core::owner::Owner;
use cohort_core::rank::Rank;
use cohort_core::record::RecordRef;
use cohort_core::subsystem::{self, Sleep, Subsystem};
use cohort_core::turn::{Look, Turn};
use cohort_fabric::{Budget, Event, Limits, Transport};
use cohort_steal::TaskKind;
use cohort_steal::park::{Awake, Ticket};
use core::cell::Cell;
use core::ptr::NonNull;
use link::{IN_BUSY, Link, Outgoing};
use names::Names;
use table::LinkTable;
use wire::{Header, PacketKind};

/// How long a turn looks at the network if its rank waits: alone on its node, or not.
const LOOKS_ALONE: u32 = 16;
const LOOKS_AMONG_OTHERS: u32 = 4;

/// Events that one turn handles.
const EVENTS_PER_TURN: u32 = 64;

/// Times that one turn goes on lining up and sending.
const ROUNDS_PER_TURN: u32 = 4;

/// Turns of an owner that expects nothing from the network between two looks at it.
const TURNS_PER_LOOK: u32 = 16;

/// The most for [`Net::piece`].
const PIECE_MAX: usize = 64 << 10;

/// The bit of a token that tells a read from a packet.
pub const READ: u64 = 1;

/// The subsystem.
#[derive(Debug)]
pub struct Network;

/// The network of a node.
pub struct Net {
    /// What the packets go through, but for those to other jobs if the job has several nodes.
    pub transport: &'static dyn Transport,
    /// What these go through then.
    bridge: FutexOnce<&'static Bridge>,
    /// Whether one rank watches the network while all sleep. Where other jobs are all there is beyond the node, their
    /// launcher wakes ranks.
    is_watched: bool,
    /// What it can do.
    pub limits: Limits,
    /// The longest message that travels with its data.
    pub eager_max: u64,
    /// Bytes of data of one packet, where data travels in several: they are made, sent and taken in turn.
    pub piece: u64,
    /// Who watches the network: a rank's number plus one, or that of a dedicated worker behind those of the ranks; 0 if
    /// nobody does.
    watcher: AtomicU32,
    /// Watches in a row that ended because of events of which nobody found any.
    fruitless: AtomicU32,
    /// Ranks for which somebody else than their callers acts, and of which the transport refuses something.
    refused: AtomicU32,
}

impl Net {
    /// The network of this node, if the job has more than one.
    #[inline]
    #[must_use]
    pub fn of(node: &Node) -> Option<&Self> {
        node.part::<Network>().get()
    }

    fn new(transport: &'static dyn Transport, is_watched: bool, eager_max: usize) -> Self {
        let limits = transport.limits();
        Self {
            transport,
            bridge: FutexOnce::new(),
            is_watched,
            limits,
            eager_max: eager_max.min(limits.packet - Header::BYTES) as u64,
            piece: PIECE_MAX.min(limits.packet - Header::BYTES) as u64,
            watcher: AtomicU32::new(0),
            fruitless: AtomicU32::new(0),
            refused: AtomicU32::new(0),
        }
    }
}

/// What one rank has under way with remote peers.
#[derive(Debug)]
pub struct NetState {
    /// Those to the peers that it has exchanged packets with.
    links: LinkTable,
    /// Names of operations that peers are to answer.
    names: Names,
    /// What is said at its ports, if anything.
    calls: Option<NonNull<Calls>>,
    /// Links with packets that wait.
    busy: List<Link, IN_BUSY>,
    /// Whether an event is being handled, so that the transport must not be called.
    is_polling: bool,
    /// Whether more packets are about to be lined up, so that nothing is sent yet.
    is_holding: bool,
    /// Whether something came of that.
    has_held: bool,
    /// Whether the rank has said goodbye.
    is_closing: bool,
    turns: u32,
    /// Packets that the transport has taken, and that were handled: whoever asks whether any is on its way compares
    /// the sums of all ranks of the job.
    sent: u64,
    received: u64,
}

impl NetState {
    /// The state of a new rank.
    const fn new() -> Self {
        Self {
            links: LinkTable::EMPTY,
            names: Names::EMPTY,
            calls: None,
            busy: List::empty(),
            is_polling: false,
            is_holding: false,
            has_held: false,
            is_closing: false,
            turns: 0,
            sent: 0,
            received: 0,
        }
    }

    /// Whether an owner's turn looks at the network: always when it expects something, else now and then.
    fn is_due(&mut self, expects: bool) -> bool {
        self.turns = self.turns.wrapping_add(1);
        expects || self.turns.is_multiple_of(TURNS_PER_LOOK)
    }
}

/// What a turn did.
#[derive(Clone, Copy, Debug, Default)]
pub struct NetTurn {
    /// Whether anything moved.
    pub moved: bool,
    /// Whether data has moved on, of whichever rank of the node.
    pub flows: bool,
    /// Whether something has come for other ranks of the node.
    posted: bool,
    /// Bytes that came.
    pub bytes: u64,
}

/// How often a rank that waits looks at the network in a turn. Where ranks outnumber CPUs, who is to send may wait for
/// its CPU.
const fn looks_of_waiter(ranks: u32, is_crowded: bool) -> u32 {
    match ranks {
        _ if is_crowded => 1,
        1 => LOOKS_ALONE,
        _ => LOOKS_AMONG_OTHERS,
    }
}

/// The network's part of an owner's turn; a rank that waits looks longer for what it expects.
#[inline]
fn turn_of_owner(claim: &mut Claim<'_>, net: &Net, waits: bool) -> NetTurn {
    let id = claim.rank().id();
    let expects = claim.expects(TaskKind::Net) || net.transport.owes(id);
    if !claim.of::<Network>().is_due(expects) {
        return NetTurn::default();
    }
    let node = claim.rank().node();
    let looks = if waits && expects { looks_of_waiter(node.size(), node.is_crowded()) } else { 1 };
    let turn = turn_with(claim, net, id, looks);
    if waits && turn.posted && !claim.rank().capabilities().steals() {
        watch::tell_others(claim.rank());
    }
    turn
}

/// Takes what has arrived for the claimed rank, and sends what waits. `caller` is the rank whose task this is.
pub fn turn(claim: &mut Claim<'_>, net: &Net, caller: LocalRank) -> NetTurn {
    turn_with(claim, net, caller, 1)
}

/// [`turn`] that looks several times for something that has arrived.
fn turn_with(claim: &mut Claim<'_>, net: &Net, caller: LocalRank, looks: u32) -> NetTurn {
    let mut bytes = 0;
    let endpoint = claim.rank().id();
    claim.of::<Network>().is_polling = true;
    let budget = Budget { events: EVENTS_PER_TURN, looks };
    let mut polled = net.transport.poll(endpoint, caller, budget, &mut |event| {
        bytes += handle(claim, event);
    });
    if let Some(bridge) = net.bridge.get() {
        let others = bridge.poll(endpoint, caller, budget, &mut |event| {
            bytes += handle(claim, event);
        });
        polled.events += others.events;
    }
    claim.of::<Network>().is_polling = false;
    let moved = settle(claim, net, caller);
    // A sleeping owner may wait for any change (a probe for a message, the end for goodbyes), or has to
    // poll for itself.
    if polled.events > 0 || net.transport.owes(endpoint) {
        claim.rank().wake();
    }
    NetTurn { moved: moved || polled.events > 0, flows: polled.flows, posted: polled.posted, bytes }
}

/// After a change of the state outside of a turn: sends what has come of it, unless an event is being handled.
pub fn kick(claim: &mut Claim<'_>) {
    let Some(net) = Net::of(claim.rank().node()) else {
        return;
    };
    let state = claim.of::<Network>();
    if state.is_holding {
        state.has_held = true;
    } else if !state.is_polling {
        settle(claim, net, claim.caller());
        if !claim.is_by_owner() {
            leave_to_owner(claim, net);
        }
    }
}

/// Does something that starts several messages, and then sends what has come of it: packets to one peer in one call.
pub fn together<R>(claim: &mut Claim<'_>, start: impl FnOnce(&mut Claim<'_>) -> R) -> R {
    let before = core::mem::replace(&mut claim.of::<Network>().is_holding, true);
    let result = start(claim);
    let state = claim.of::<Network>();
    state.is_holding = before;
    if !before && core::mem::take(&mut state.has_held) {
        kick(claim);
    }
    result
}

/// Has the claimed rank's connection to a remote peer made, if there is none: by a packet that says
/// nothing. Calls by thieves are to find the connections that they use. Nothing is sent before the
/// next [`kick`].
pub fn greet(claim: &mut Claim<'_>, peer: Peer) {
    let node = claim.rank().node();
    if !node.has_network() || node.local(peer).is_some() {
        return;
    }
    if claim.of::<Network>().links.find(peer).is_none() {
        link::answer(claim, peer, Header::new(PacketKind::Credit, 0));
    }
}

/// Whether the claimed rank has exchanged packets with a remote peer.
#[cfg(any(test, feature = "testing"))]
pub fn is_acquainted(claim: &mut Claim<'_>, peer: Peer) -> bool {
    claim.of::<Network>().links.find(peer).is_some()
}

/// After a task that is not the owner's has sent: what it may not send itself is the owner's to do, if that waits.
#[cold]
fn leave_to_owner(claim: &mut Claim<'_>, net: &Net) {
    if net.transport.owes(claim.rank().id()) || subsystem::hooks::is_stalled(claim) {
        claim.rank().wake();
    }
}

/// Sends packets, starts reads and completes sends, as far as the transport goes along. Says whether
/// anything moved.
fn settle(claim: &mut Claim<'_>, net: &Net, caller: LocalRank) -> bool {
    let mut moved = 0;
    for _ in 0..ROUNDS_PER_TURN {
        let mut now = hooks::line_up(claim, net, caller);
        if !claim.of::<Network>().busy.is_empty() {
            now += link::flush(claim, caller);
        }
        now += hooks::complete(claim, net, caller);
        moved += now;
        if now == 0 {
            break;
        }
    }
    watch::count_refused(claim, net, caller);
    moved > 0
}

/// Tells how many packets the claimed rank has sent and received, and whether nothing of it is under way, if the job
/// has several nodes. By anybody with the claim: it changes nothing.
pub fn tell_traffic(claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
    if !claim.rank().node().has_network() {
        return;
    }
    let is_quiet = subsystem::hooks::is_quiet(claim) && !subsystem::hooks::is_stalled(claim);
    let state = claim.of::<Network>();
    tell(Fact { number: state.sent, key: state.received, count: u32::from(!is_quiet), ..Fact::new(Told::Traffic) });
}

/// Packets that the claimed rank has handled.
pub fn packets_received(claim: &mut Claim<'_>) -> u64 {
    claim.of::<Network>().received
}

/// Handles one event. Returns the bytes that came into a user's buffer.
fn handle(claim: &mut Claim<'_>, event: Event<'_>) -> u64 {
    match event {
        Event::Packet { from, bytes } => packet(claim, from, bytes),
        Event::Begins { from, bytes, rest, place } => begins(claim, from, bytes, rest, place),
        Event::Completed(token) if token & READ != 0 => hooks::read_ended(claim, token, None),
        Event::Completed(token) => {
            packet_done(claim, token, None);
            0
        }
        Event::Failed { token, code } if token & READ != 0 => hooks::read_ended(claim, token, Some(code)),
        Event::Failed { token, code } => {
            packet_done(claim, token, Some(code));
            0
        }
        Event::Lost { rank, code } => {
            let node = claim.rank().node();
            if node.has_number(rank) && node.local(node.peer(rank)).is_none() {
                let peer = node.peer(rank);
                if node.is_foreign(peer) {
                    outside::lost(claim, peer, code);
                    return 0;
                }
                // A node is lost with all that it may spawn: whom nobody has heard of is not missed.
                if rank < node.world_size() || claim.of::<Network>().links.find(peer).is_some() {
                    fail::lost(claim, peer, code);
                }
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
    // SAFETY: the token is the address of a packet that was pending.
    let packet = unsafe { RecordRef::new(packet) };
    if let Some(link) = packet.link.get() {
        if let Some(code) = failure {
            fail::lost(claim, link.peer, code);
        }
        link.in_flight.set(link.in_flight.get() - 1);
    }
    claim.expect_less(TaskKind::Net);
    // SAFETY: it is in no queue, and ends once.
    unsafe { Outgoing::left(packet, claim) };
}

/// Handles one packet. Returns the bytes that came into a user's buffer.
fn packet(claim: &mut Claim<'_>, from: WorldRank, bytes: &[u8]) -> u64 {
    let node = claim.rank().node();
    if !node.has_number(from) || node.local(node.peer(from)).is_some() {
        return 0;
    }
    let peer = node.peer(from);
    claim.of::<Network>().received += 1;
    let Ok(link) = link::link_to(claim, peer) else {
        fail::no_memory(claim.rank(), peer);
    };
    let Some((header, body)) = Header::split(bytes) else {
        fail::nonsense(claim.rank(), peer);
    };
    link.give_window(u64::from(header.credit));
    link.is_closed.set(header.kind() == Some(PacketKind::Goodbye));
    match header.kind() {
        Some(PacketKind::Credit | PacketKind::Goodbye) => 0,
        Some(PacketKind::Call) => match calls::packet(claim, peer, &header, body) {
            Some(bytes) => bytes,
            None => fail::nonsense(claim.rank(), peer),
        },
        Some(_) => match hooks::packet(claim, peer, &header, body) {
            Some(bytes) => bytes,
            // It is about something that has failed meanwhile.
            None if node.failure_epoch() != 0 => 0,
            None => fail::nonsense(claim.rank(), peer),
        },
        None => fail::nonsense(claim.rank(), peer),
    }
}

/// The beginning of a packet: says where the rest goes if it is a message that a receive waits for. Returns the bytes
/// that came into a user's buffer.
fn begins(claim: &mut Claim<'_>, from: WorldRank, bytes: &[u8], rest: usize, place: &Cell<Option<Place>>) -> u64 {
    let node = claim.rank().node();
    if !node.has_number(from) || node.local(node.peer(from)).is_some() {
        return 0;
    }
    let peer = node.peer(from);
    let Some((header, body)) = Header::split(bytes) else {
        return 0;
    };
    let is_message = header.kind() == Some(PacketKind::Eager) && header.bytes == (body.len() + rest) as u64;
    // Without the link the whole packet says what is missing.
    let Some(link) = is_message.then(|| link::link_to(claim, peer).ok()).flatten() else {
        return 0;
    };
    place.set(hooks::begins(claim, peer, &header, body));
    if place.get().is_none() {
        return 0;
    }
    claim.of::<Network>().received += 1;
    link.give_window(u64::from(header.credit));
    link.is_closed.set(false);
    body.len() as u64
}

// SAFETY: no other subsystem has this place.
unsafe impl Subsystem for Network {
    const SLOT: usize = 0;
    type Node = FutexOnce<Net>;
    /// Whether the rank counts among [`Net::refused`].
    type Shared = AtomicBool;
    type State = NetState;
    type Tables = ();

    fn tables(_cursor: &mut Cursor, _plan: &Plan) {}

    fn node(node: &'static Node, (): &mut ()) -> FutexOnce<Net> {
        let net = FutexOnce::new();
        if let Some(transport) = node.network() {
            net.get_or_init(|| Net::new(transport, true, node.settings().net_eager_max));
        }
        net
    }

    fn rank(_node: &'static Node, _id: LocalRank, (): &mut ()) -> (AtomicBool, NetState) {
        (AtomicBool::new(false), NetState::new())
    }

    fn begin(owner: Owner<'static>) {
        close::open(owner.rank());
    }

    fn end(owner: Owner<'static>) {
        close::close(owner);
    }

    #[inline]
    fn turn(claim: &mut Claim<'_>, look: Look, turn: &mut Turn) {
        if !look.is_at_network() {
            return;
        }
        let Some(net) = Net::of(claim.rank().node()) else {
            return;
        };
        let took = match look {
            Look::Own { waits } => turn_of_owner(claim, net, waits),
            Look::Last => turn_of_owner(claim, net, false),
            _ => self::turn(claim, net, claim.caller()),
        };
        turn.moved |= took.moved;
        turn.flows |= took.flows;
        turn.bytes += took.bytes;
    }

    #[inline]
    fn is_idle(claim: &mut Claim<'_>) -> bool {
        !claim.rank().node().has_network()
    }

    fn is_stalled(claim: &mut Claim<'_>) -> bool {
        !claim.of::<Self>().busy.is_empty()
    }

    fn is_quiet(claim: &mut Claim<'_>) -> bool {
        close::are_links_quiet(claim)
    }

    fn woken(rank: &Rank) {
        if let Some(net) = Net::of(rank.node()) {
            net.interrupt(rank);
        }
    }

    fn sleep(rank: &Rank, ticket: Ticket, sleep: &Sleep) -> Result<Awake, Ticket> {
        watch::sleep(rank, ticket, sleep)
    }

    fn hand_over(node: &'static Node) {
        watch::hand_over(node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_without_a_cpu_of_its_own_looks_once() {
        assert!((1..9).all(|ranks| looks_of_waiter(ranks, true) == 1));
        assert!((1..9).all(|ranks| looks_of_waiter(ranks, false) > 1));
    }
}
