//! All-to-all in which one member of each node, its *leader*, carries short blocks of all of them.
//!
//! Of *p* members here and *q* on another node every one has a block for every one: *pq* messages, or one. Members
//! post where their blocks lie; the leader packs those for each node, and the others copy theirs out of what it
//! has received. Only for blocks of one length (`MPI_Alltoall`), which all members know.
//!
//! Long blocks travel *apart*, straight between members. Should members disagree about the length, in a wrong program,
//! they might disagree about this too. So those of a node tell each other, and leaders each other in any case: a
//! message between leaders begins with the length, or with [`APART`], and then has nothing else. Between two nodes of
//! which one says so all blocks travel apart.

use crate::args::Blocks;
use crate::blocking::round::{Finish, Record, Round};
use crate::blocking::schedule::{builder, run};
use crate::data::{copy_piece, copy_whole};
use crate::members::{Caller, Hierarchy, LocalGroup};
use crate::memory::{Bytes, Packed, bytes, reserve};
use crate::write::ScheduleBuilder;
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_datatype::Buffer;

/// The longest block that goes with others, and the most bytes that a member may send in such blocks: the leader
/// copies them twice.
const BLOCK_MOST: u64 = 2 << 10;
const MEMBER_MOST: u64 = 256 << 10;

/// Instead of a length: blocks travel apart.
const APART: u64 = u64::MAX;

/// Bytes of the length that a message between leaders begins with.
const HEADER: usize = size_of::<u64>();

/// What a member posts.
struct Post<'a> {
    send: &'a Blocks<'a>,
    /// The length of a block.
    block: u64,
}

// SAFETY: no other record has this number.
unsafe impl Record for Post<'_> {
    const NUMBER: u64 = 3;
}

/// A message between the leaders of two nodes: the blocks from each of the sender's members to each of the
/// receiver's.
#[derive(Clone, Copy)]
struct Message {
    bytes: Bytes,
    /// Of a block, or [`APART`].
    block: u64,
}

impl Message {
    fn buffer(&self) -> Buffer<'static> {
        self.bytes.buffer()
    }

    /// Block `number`.
    fn at(&self, number: usize) -> Buffer<'static> {
        self.bytes.part(HEADER as u64 + number as u64 * self.block, self.block).buffer()
    }

    /// What it begins with, which is there from the start.
    fn header(&self) -> u64 {
        self.bytes.word(0)
    }
}

/// The messages of all nodes, and their memory.
struct Messages {
    memory: Vec<u8>,
    all: Vec<Message>,
}

// SAFETY: no other record has this number.
unsafe impl Record for Messages {
    const NUMBER: u64 = 4;
}

impl Messages {
    /// # Errors
    /// [`EngineError::OutOfMemory`].
    fn new(hierarchy: &Hierarchy, block: u64) -> Result<Self, EngineError> {
        let data = if block == APART { 0 } else { block as usize };
        let length = |node| (HEADER + hierarchy.members(node).len() * hierarchy.local_size() * data) as u64;
        let (memory, bytes) = bytes((0..hierarchy.nodes()).map(length).sum())?;
        let mut all = reserve(hierarchy.nodes())?;
        let mut at = 0;
        for node in 0..hierarchy.nodes() {
            let bytes = bytes.part(at, length(node));
            bytes.set_word(0, block);
            all.push(Message { bytes, block });
            at += length(node);
        }
        Ok(Self { memory, all })
    }
}

/// All-to-all of blocks that are, as far as this member knows, `block` bytes long.
///
/// # Errors
/// As [`alltoall`](crate::alltoall).
pub(super) fn alltoall(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    send: Option<&Blocks<'_>>,
    receive: &Blocks<'_>,
    block: u64,
) -> Result<(), EngineError> {
    let Some(send) = send else {
        let packed = Packed::of_others(receive, group.me(), group.size())?;
        return exchange_all(group, hierarchy, &packed.blocks(), receive, block);
    };
    let own = copy_whole(receive.block(group.me()), send.block(group.me()));
    own.and(exchange_all(group, hierarchy, send, receive, block))
}

/// Exchanges all blocks but the caller's own.
fn exchange_all(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    send: &Blocks<'_>,
    receive: &Blocks<'_>,
    block: u64,
) -> Result<(), EngineError> {
    let here = group.local(hierarchy);
    let post = Post { send, block };
    let round = Round::begin(&here);
    round.post_address(&post);
    round.exchange();
    let mut outcome = swap_here(&here, hierarchy, &round, group.me(), receive);
    let block = common_block(group, &here, &round, &post);
    let outgoing = (here.me == 0).then(|| pack_for_nodes(hierarchy, &round, send, block));
    round.finish(Finish::Everyone);
    let mut schedule = builder(group, None);
    // Filled by the exchange before others hear of it.
    let mut incoming = None;
    if let Some(outgoing) = outgoing {
        let outgoing = outgoing?;
        let incoming = incoming.insert(Messages::new(hierarchy, block)?);
        exchange(&mut schedule, hierarchy, outgoing, incoming);
        if block != APART {
            outcome = outcome.and(run(group.owner, schedule));
            schedule = builder(group, None);
        }
    }
    if block == APART {
        let (nodes, this_node) = (hierarchy.nodes(), hierarchy.this_node());
        let everywhere = (1..nodes).map(|distance| (this_node + distance) % nodes);
        travel_apart(&mut schedule, hierarchy, everywhere, send, receive);
        return outcome.and(run(group.owner, schedule));
    }
    let round = Round::begin(&here);
    let (apart, taken) = match &incoming {
        Some(incoming) => {
            round.post_address(incoming);
            round.announce();
            let taken = take(&here, hierarchy, incoming, receive);
            round.finish(Finish::Everyone);
            taken
        }
        None => {
            round.await_member(0);
            let taken = take(&here, hierarchy, round.record::<Messages>(0), receive);
            round.finish(Finish::Nobody);
            taken
        }
    };
    travel_apart(&mut schedule, hierarchy, apart.into_iter(), send, receive);
    outcome.and(taken).and(run(group.owner, schedule))
}

/// The length of the blocks of all members of the node, if it is one and so short that they go through the leader.
fn common_block(group: &Caller<'_>, here: &LocalGroup<'_>, round: &Round<'_>, own: &Post<'_>) -> u64 {
    let block = own.block;
    let is_short = block <= BLOCK_MOST && block * group.size() as u64 <= MEMBER_MOST;
    let mut others = (0..here.size()).filter(|&place| place != here.me());
    let is_common = others.all(|place| round.record::<Post<'_>>(place).block == block);
    if is_short && is_common { block } else { APART }
}

/// Steps that exchange all blocks with the members of some other nodes.
fn travel_apart<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    hierarchy: &Hierarchy,
    nodes: impl Iterator<Item = usize> + Clone,
    send: &Blocks<'a>,
    receive: &Blocks<'a>,
) {
    let members = nodes.flat_map(|node| hierarchy.members(node));
    let members = members.map(|&member| member as usize);
    for member in members.clone() {
        schedule.receive(member, receive.block(member));
    }
    for member in members {
        schedule.send(member, send.block(member));
    }
}

/// Copies the blocks of the node's other members.
fn swap_here(
    here: &LocalGroup<'_>,
    hierarchy: &Hierarchy,
    round: &Round<'_>,
    me: usize,
    receive: &Blocks<'_>,
) -> Result<(), EngineError> {
    let mut outcome = Ok(());
    for (place, &member) in hierarchy.local_members().iter().enumerate() {
        if place != here.me() {
            let block = round.record::<Post<'_>>(place).send.block(me);
            outcome = outcome.and(copy_whole(receive.block(member as usize), block));
        }
    }
    outcome
}

/// Packs what the node's members send to others, as the messages of their nodes.
fn pack_for_nodes(
    hierarchy: &Hierarchy,
    round: &Round<'_>,
    send: &Blocks<'_>,
    block: u64,
) -> Result<Messages, EngineError> {
    let messages = Messages::new(hierarchy, block)?;
    if block == APART {
        return Ok(messages);
    }
    for place in 0..hierarchy.local_size() {
        let blocks = match place {
            0 => send,
            _ => round.record::<Post<'_>>(place).send,
        };
        for node in (0..hierarchy.nodes()).filter(|&node| node != hierarchy.this_node()) {
            let (message, members) = (messages.all[node], hierarchy.members(node));
            for (number, &member) in members.iter().enumerate() {
                let to = message.at(place * members.len() + number);
                copy_piece(to, blocks.block(member as usize), 0..block);
            }
        }
    }
    Ok(messages)
}

/// Steps that exchange the messages with the other leaders.
fn exchange(schedule: &mut ScheduleBuilder<'_>, hierarchy: &Hierarchy, outgoing: Messages, incoming: &Messages) {
    let (nodes, this_node) = (hierarchy.nodes(), hierarchy.this_node());
    let leader = |node: usize| hierarchy.members(node)[0] as usize;
    for distance in 1..nodes {
        let from = (this_node + nodes - distance) % nodes;
        schedule.receive(leader(from), incoming.all[from].buffer());
    }
    for distance in 1..nodes {
        let to = (this_node + distance) % nodes;
        schedule.send(leader(to), outgoing.all[to].buffer());
    }
    schedule.keep(outgoing.memory);
}

/// Takes a member's blocks out of what has come from the other nodes. Returns those nodes whose blocks travel apart.
fn take(
    here: &LocalGroup<'_>,
    hierarchy: &Hierarchy,
    incoming: &Messages,
    receive: &Blocks<'_>,
) -> (Vec<usize>, Result<(), EngineError>) {
    let (mut apart, mut outcome) = (Vec::new(), Ok(()));
    for node in (0..hierarchy.nodes()).filter(|&node| node != hierarchy.this_node()) {
        let message = incoming.all[node];
        let header = message.header();
        if header == APART {
            apart.push(node);
            continue;
        }
        if header != message.block {
            let (message, buffer) = (header, message.block);
            outcome = Err(EngineError::Truncated { message, buffer });
            continue;
        }
        for (number, &member) in hierarchy.members(node).iter().enumerate() {
            let from = message.at(number * hierarchy.local_size() + here.me());
            let into = receive.block(member as usize);
            outcome = outcome.and(copy_whole(into, from));
        }
    }
    (apart, outcome)
}
