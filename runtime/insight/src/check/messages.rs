//! What calls tell [`Traffic`](super::traffic) and [`Waits`](super::waits) of messages and collective calls.

use super::buffers;
use super::far::{self, Far};
use super::findings::Site;
use super::shapes::{Completion, Role};
use super::traffic::{Actor, End, EndNumber, Ground, Traffic, hash};
use super::types;
use super::waits::Meeting;
use super::{Call, Shared};
use crate::calls::ParameterKind;
use alloc::vec::Vec;
use cohort_abi::Status;
use cohort_abi::neutral::{ANY_SOURCE, PROC_NULL};
use cohort_base::LocalRank;
use cohort_base::check::Mistake;
use cohort_engine::datatype::OwnedBuffer;
use cohort_object::Comm;

/// The messages of a communicator to one of its members.
pub type Key = (u32, LocalRank);

/// A message that an operation sends or receives each time.
#[derive(Clone)]
pub struct Route {
    /// Within the node, if it may go there.
    key: Option<Key>,
    /// Between nodes.
    far: Option<far::Way>,
    is_send: bool,
    source: i32,
    tag: i32,
    to: i32,
    buffer: Option<OwnedBuffer>,
    is_buffered: bool,
}

/// An end of a message that has begun.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    key: Key,
    number: EndNumber,
    is_send: bool,
}

/// What an operation does that others take part in.
#[derive(Clone, Default)]
pub struct Parts {
    /// Its messages within the node.
    pub ends: Vec<Begun>,
    /// Those between nodes.
    pub far: Vec<far::Begun>,
    /// Its collective call.
    pub meeting: Option<Meeting>,
}

/// Functions that send through the buffer of the program.
const BUFFERED: [&str; 3] = ["MPI_Bsend", "MPI_Ibsend", "MPI_Bsend_init"];

fn actor(call: &Call<'_>) -> Actor {
    Actor { rank: call.rank, thread: call.observed.thread }
}

/// The messages of a call.
pub fn routes(shared: &mut Shared, call: &Call<'_>) -> Vec<Route> {
    let (sends, receives) = match call.role {
        Role::Send | Role::BeginSend | Role::InitSend => (true, false),
        Role::Receive | Role::BeginReceive | Role::InitReceive => (false, true),
        Role::Exchange | Role::BeginExchange => (true, true),
        _ => return Vec::new(),
    };
    let Some(comm) = call.observed.comm() else {
        return Vec::new();
    };
    let mut all = Vec::new();
    all.extend(sends.then(|| sent(call, comm)).flatten());
    all.extend(receives.then(|| received(&mut shared.far, call, comm)).flatten());
    all
}

fn tag(call: &Call<'_>, own: &str) -> Option<i32> {
    let place = call.observed.call.named(own).or_else(|| call.observed.call.named("tag"))?;
    Some(call.observed.words.tag(call.observed.word(place)))
}

fn rank(call: &Call<'_>, name: &str) -> Option<i32> {
    let place = call.observed.call.named(name)?;
    Some(call.observed.words.rank(call.observed.word(place)))
}

/// Between whom a partitioned operation goes: the communicator and the receiver, the sender's rank in it, and the tag.
pub fn ways(shared: &mut Shared, call: &Call<'_>, buffer: &OwnedBuffer, is_send: bool) -> Option<(Key, i32, i32)> {
    let comm = call.observed.comm()?;
    let route = if is_send { sent(call, comm)? } else { received(&mut shared.far, call, comm)? };
    if let Some(way) = route.far {
        shared.far.partitioned(way, call.site, buffer, &mut shared.findings);
    }
    Some((route.key?, route.source, route.tag))
}

fn sent(call: &Call<'_>, comm: &Comm) -> Option<Route> {
    let to = rank(call, "dest")?;
    let (source, tag) = (comm.me() as i32, tag(call, "sendtag")?);
    let is_partitioned = call.role == Role::InitPartitionedSend;
    let key = comm.rank().node().local(comm.peer(to)?).map(|peer| (comm.context(), peer));
    let far = Far::way_to(comm, to, tag, is_partitioned);
    let is_buffered = BUFFERED.contains(&call.site.name);
    Some(Route { key, far, is_send: true, source, tag, to, buffer: buffers::sent(call), is_buffered })
}

fn received(far: &mut Far, call: &Call<'_>, comm: &Comm) -> Option<Route> {
    let source = rank(call, "source")?;
    if source == PROC_NULL {
        return None;
    }
    let is_here = source == ANY_SOURCE || comm.rank().node().local(comm.peer(source)?).is_some();
    let (to, tag) = (comm.me() as i32, tag(call, "recvtag")?);
    let (key, far) = (is_here.then(|| (comm.context(), call.rank)), far.way_from(comm, source, tag));
    Some(Route { key, far, is_send: false, source, tag, to, buffer: buffers::received(call), is_buffered: false })
}

impl Shared {
    /// Tells something of messages, and what comes of it to those who play the calls again.
    fn follow<R>(&mut self, act: impl FnOnce(&mut Traffic, &mut Ground<'_>) -> R) -> R {
        let Self { kinds, findings, traffic, waits, .. } = self;
        let mut ground = Ground { kinds: *kinds, findings, events: Vec::new() };
        let outcome = act(traffic, &mut ground);
        for event in ground.events {
            waits.hear(traffic, event);
        }
        outcome
    }

    /// The end of a message is none any more.
    fn forget_end(&mut self, begun: Begun) {
        self.follow(|traffic, ground| traffic.forget(begun.key, begun.number, ground));
        self.waits.forget(&mut self.traffic, begun.number);
    }

    /// Whether anybody wants to know of messages.
    fn follows_messages(&self) -> bool {
        let all = [Mistake::Unreceived, Mistake::Types, Mistake::Bytes, Mistake::Deadlocks, Mistake::Wildcards];
        all.into_iter().any(|mistake| self.kinds.has(mistake))
    }
}

/// Messages begin.
pub fn begin(shared: &mut Shared, call: &Call<'_>, routes: &[Route]) -> Parts {
    let mut begun = Parts::default();
    if !shared.follows_messages() {
        return begun;
    }
    let hashes = shared.kinds.has(Mistake::Wildcards);
    for route in routes {
        let far =
            route.far.and_then(|way| shared.far.begin(way, call.site, route.buffer.as_ref(), &mut shared.findings));
        begun.far.extend(far);
        let Some(key) = route.key else {
            continue;
        };
        let end = End {
            site: call.site,
            actor: actor(call),
            is_send: route.is_send,
            buffer: route.buffer.clone(),
            source: route.source,
            tag: route.tag,
            wanted: route.tag,
            to: route.to,
            content: if route.is_send && hashes { hash(route.buffer.as_ref()) } else { 0 },
            is_buffered: route.is_buffered,
            is_blind: false,
            clock: Vec::new(),
            was_open: !route.is_send && route.source == ANY_SOURCE,
            partner: None,
        };
        let number = shared.follow(|traffic, ground| match route.is_send {
            true => traffic.send(key, end, ground),
            false => traffic.receive(key, end, ground),
        });
        if let Some(number) = number {
            shared.waits.begin(&mut shared.traffic, number);
            begun.ends.push(Begun { key, number, is_send: route.is_send });
        }
    }
    begun
}

/// A message was taken out of the queue, for a receive that is sure to get it.
pub fn matched(shared: &mut Shared, call: &Call<'_>, status: Status) {
    let Some((comm, peer)) = call.observed.comm().and_then(|comm| Some((comm, comm.peer(status.source)?))) else {
        return;
    };
    let (source, tag, to, buffer) = (status.source, status.tag, comm.me() as i32, None);
    let far = shared.far.way_from(comm, source, tag);
    let key = comm.rank().node().local(peer).map(|_| (comm.context(), call.rank));
    let route = Route { key, far, is_send: false, source, tag, to, buffer, is_buffered: false };
    let mut parts = begin(shared, call, &[route]);
    // Its type is that of the receive.
    if let Some((begun, message)) = parts.far.pop().zip(message(call)) {
        shared.known(call.rank).far_matched.insert(message, begun);
    }
    let sender = parts.ends.first().and_then(|begun| {
        let partner = shared.traffic.end(begun.number)?.partner?;
        let sent = shared.traffic.end(partner)?;
        sent.buffer.clone().map(|buffer| (sent.site, buffer))
    });
    if let Some((sent, buffer)) = sender
        && let Some(message) = message(call)
    {
        shared.known(call.rank).matched.insert(message, Matched { by: call.site, sent, buffer });
    }
    complete(shared, call, &parts, Some(status), false);
}

/// A message that was taken out of the queue, and waits for its receive.
pub struct Matched {
    by: Site,
    sent: Site,
    buffer: OwnedBuffer,
}

/// The message that a call receives, or has taken out of the queue.
fn message(call: &Call<'_>) -> Option<u32> {
    let place = call.observed.call.named("message")?;
    // SAFETY: the program passes the address of a handle, as the standard demands.
    Some(unsafe { call.observed.words.object_at(ParameterKind::Message, call.observed.word(place)) })
}

/// A receive begins: is it of a message that was taken out of the queue, and are the types the same? Gives a message of
/// another node.
pub fn takes(shared: &mut Shared, call: &Call<'_>) -> Option<far::Begun> {
    let message = message(call).filter(|_| call.role != Role::Match)?;
    if let Some(begun) = shared.known(call.rank).far_matched.remove(&message) {
        shared.far.takes(begun, call.site, buffers::received(call));
        return Some(begun);
    }
    let matched = shared.known(call.rank).matched.remove(&message)?;
    if let Some(buffer) = buffers::received(call) {
        let (sender, receiver) = ((matched.sent, &matched.buffer), (call.site, &buffer));
        types::compare(sender, receiver, shared.kinds, &mut shared.findings);
    }
    None
}

/// A rank is about to end MPI: messages that it has taken out of the queue, and never received.
pub fn finalizes(shared: &mut Shared, call: &Call<'_>) {
    let known = shared.known(call.rank);
    let matched = core::mem::take(&mut known.matched);
    let far: Vec<far::Begun> = core::mem::take(&mut known.far_matched).into_values().collect();
    let rank = call.observed.subject.objects.rank();
    let number = rank.node().world_rank(rank.peer());
    shared.far.finalizes((call.rank, number), &far, shared.kinds, &mut shared.findings);
    if !shared.kinds.has(Mistake::Unreceived) {
        return;
    }
    for Matched { by, sent, buffer } in matched.into_values() {
        let places = [sent.did("sent"), by.did("took it out of the queue")];
        shared.findings.add(Mistake::Unreceived, &places, format_args!("a message of {} bytes", buffer.bytes()));
    }
}

/// A collective call begins.
pub fn arrive(shared: &mut Shared, call: &Call<'_>) -> Option<Meeting> {
    if !matches!(call.role, Role::Collective | Role::BeginCollective) || !shared.follows_messages() {
        return None;
    }
    let comm = call.observed.comm().filter(|comm| !comm.is_inter() && comm.size() > 1)?;
    let node = comm.rank().node();
    let members: Option<Vec<LocalRank>> = comm.group().members().iter().map(|&peer| node.local(peer)).collect();
    let members = members?;
    Some(shared.waits.arrive(&mut shared.traffic, actor(call), comm.context(), &members))
}

/// Whether a status says something of these messages that is not known otherwise.
pub fn needs_status(shared: &Shared, parts: &Parts) -> bool {
    let is_open = |begun: &Begun| shared.traffic.end(begun.number).is_some_and(|end| end.source == ANY_SOURCE);
    parts.ends.iter().any(is_open) || parts.far.iter().any(far::Begun::is_receive)
}

/// An operation is complete. The status is that of its receive; `is_blind`: the program does not see it.
pub fn complete(shared: &mut Shared, call: &Call<'_>, parts: &Parts, status: Option<Status>, is_blind: bool) {
    let is_far =
        status.is_some_and(|status| parts.far.iter().any(|&begun| shared.far.is_from_elsewhere(begun, status.source)));
    for &begun in &parts.ends {
        complete_end(shared, call, begun, (status, is_blind), is_far);
    }
    for &begun in &parts.far {
        shared.far.complete(begun, status, &mut shared.findings);
    }
    if let Some(meeting) = parts.meeting {
        if let Some(clock) = shared.waits.clock_of(meeting) {
            shared.traffic.learn(call.rank, &clock);
        }
        match is_sure_to_wait(call) {
            true => shared.waits.meet(&mut shared.traffic, actor(call), meeting, call.site),
            false => shared.waits.leave(meeting),
        }
    }
}

/// The same of one of its messages.
fn complete_end(
    shared: &mut Shared,
    call: &Call<'_>,
    begun: Begun,
    (status, is_blind): (Option<Status>, bool),
    is_far: bool,
) {
    let Begun { key, number, is_send } = begun;
    if status.is_some_and(|status| status.cancelled) {
        return shared.forget_end(begun);
    }
    if !is_send {
        let is_open = shared.traffic.end(number).is_some_and(|end| end.source == ANY_SOURCE);
        let is_here = status.is_some_and(|status| is_local(call, status.source) && !is_far);
        if is_open && !is_here {
            return shared.forget_end(begun);
        }
        let from = status.map(|status| (status.source, status.tag)).filter(|_| is_open);
        shared.follow(|traffic, ground| traffic.complete(key, number, from, is_blind, ground));
    }
    match is_sure_to_wait(call) {
        true => shared.waits.wait(&mut shared.traffic, actor(call), number, call.site),
        false => shared.waits.give_away(&mut shared.traffic, number),
    }
}

/// Whether a call would have waited for all that it has completed. A test would have gone on, and a call for one of
/// several requests may have found another one.
fn is_sure_to_wait(call: &Call<'_>) -> bool {
    let Role::Complete(completion) = call.role else {
        return true;
    };
    matches!(completion, Completion::Wait | Completion::Waitall)
}

/// Whether a receive's source is a rank of this node, as far as the call says for which communicator.
fn is_local(call: &Call<'_>, source: i32) -> bool {
    if call.observed.call.find(ParameterKind::Comm).is_none() {
        return source >= 0;
    }
    let comm = call.observed.comm();
    let peer = comm.and_then(|comm| Some(comm.rank().node().local(comm.peer(source)?)));
    peer.is_none_or(|peer| peer.is_some())
}

/// Messages whose call has failed, or which are given away.
pub fn forget(shared: &mut Shared, parts: &Parts) {
    for &begun in &parts.ends {
        shared.forget_end(begun);
    }
    for &begun in &parts.far {
        shared.far.forget(begun);
    }
}

/// Messages of a request that is given away: nobody waits for them.
pub fn give_away(shared: &mut Shared, parts: &Parts, is_cancelled: bool) {
    for begun in &parts.ends {
        let is_met = shared.traffic.end(begun.number).is_some_and(|end| end.partner.is_some());
        if is_cancelled && !is_met {
            shared.forget_end(*begun);
            continue;
        }
        shared.waits.give_away(&mut shared.traffic, begun.number);
    }
    for &begun in &parts.far {
        // What is sent arrives.
        if is_cancelled || begun.is_receive() {
            shared.far.forget(begun);
        }
    }
}
