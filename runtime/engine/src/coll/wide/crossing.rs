//! All-to-all in which one member of each node, its *leader*, carries the blocks of all of them.
//!
//! Of *p* members here and *q* on another node every one has a block for every one: *pq* messages, or one. Members
//! post where their blocks lie; the leader packs those for each node, and the others copy theirs out of what it
//! has received. Only for blocks of one length (`MPI_Alltoall`), which all members know.

use super::script::byte;
use super::{Group, Script, Spread};
use crate::EngineError;
use crate::coll::Blocks;
use crate::coll::blocks::{copy_whole, unpack_inline};
use crate::coll::fold::reserve;
use crate::coll::round::{Finish, Round};
use crate::datatype::{Layout, pack};
use alloc::vec::Vec;

/// The longest block that goes with others, and the most bytes that a member may send in such blocks: the leader
/// copies them twice.
const BLOCK_MOST: u64 = 2 << 10;
const MEMBER_MOST: u64 = 256 << 10;

/// The length of a block if an all-to-all goes through leaders, which all members answer alike.
pub(in crate::coll) fn block_by_node(
    group: &Group<'_>,
    spread: &Spread,
    receive: &Blocks<'_>,
) -> Option<u64> {
    let block = receive.equal_bytes(1)?;
    let pays = block <= BLOCK_MOST && block * group.size() as u64 <= MEMBER_MOST;
    (pays && spread.has_neighbours()).then_some(block)
}

/// Memory for what the leader of a node exchanges with the others: for each node a message with the blocks from each
/// of the sender's members to each of the receiver's.
struct Messages {
    _memory: Vec<u8>,
    base: *mut u8,
    block: u64,
    members_here: usize,
}

impl Messages {
    fn new(group: &Group<'_>, spread: &Spread, block: u64) -> Result<Self, EngineError> {
        let members_here = spread.members_here();
        let bytes = (group.size() * members_here) as u64 * block;
        let mut memory: Vec<u8> = reserve(bytes as usize)?;
        Ok(Self {
            base: memory.as_mut_ptr(),
            _memory: memory,
            block,
            members_here,
        })
    }

    /// The message of a node, of which `members` members come before it.
    fn message(&self, before: usize, members: usize) -> Layout<'static> {
        let bytes = (members * self.members_here) as u64 * self.block;
        Layout::new(self.at(before * self.members_here), bytes, byte())
    }

    /// Where block `number` lies.
    fn at(&self, number: usize) -> *mut u8 {
        self.base.wrapping_add(number * self.block as usize)
    }
}

/// All-to-all of blocks of `block` bytes.
///
/// # Safety
/// As [`alltoall`](crate::coll::alltoall), whose own block is in place.
pub(in crate::coll) unsafe fn alltoall_by_node(
    group: &Group<'_>,
    spread: &Spread,
    send: &Blocks<'_>,
    receive: &Blocks<'_>,
    block: u64,
) -> Result<(), EngineError> {
    let inner = spread.inner(group);
    let round = Round::begin(&inner);
    round.post_address(send);
    round.exchange();
    // SAFETY: everyone has posted its blocks, which stay until everyone has completed the round.
    let (mut outcome, outgoing) = unsafe {
        let near = swap_here(&inner, spread, &round, group.me(), receive);
        let packed = (inner.me == 0).then(|| pack_for_nodes(group, spread, &round, send, block));
        (near, packed)
    };
    round.finish(Finish::Everyone);
    if let Some(outgoing) = outgoing {
        let (outgoing, incoming) = (outgoing?, Messages::new(group, spread, block)?);
        outcome = outcome.and(exchange(group, spread, &outgoing, &incoming));
        let round = Round::begin(&inner);
        round.post_address(&incoming);
        round.announce();
        // SAFETY: filled by the exchange; the blocks are the caller's.
        outcome = outcome.and(unsafe { take(&inner, spread, &incoming, receive) });
        round.finish(Finish::Everyone);
        return outcome;
    }
    let round = Round::begin(&inner);
    round.await_member(0);
    // SAFETY: the leader has posted what it has received.
    let taken = unsafe { take(&inner, spread, round.record::<Messages>(0), receive) };
    round.finish(Finish::Nobody);
    outcome.and(taken)
}

/// Copies the blocks of the node's other members.
///
/// # Safety
/// All have posted their blocks in this round.
unsafe fn swap_here(
    inner: &Group<'_>,
    spread: &Spread,
    round: &Round<'_>,
    me: usize,
    receive: &Blocks<'_>,
) -> Result<(), EngineError> {
    let mut outcome = Ok(());
    for (place, &member) in spread.members(spread.here()).iter().enumerate() {
        if place != inner.me() {
            // SAFETY: the caller's promise.
            let copied = unsafe {
                let block = round.record::<Blocks<'_>>(place).block(me);
                copy_whole(receive.block(member as usize), block)
            };
            outcome = outcome.and(copied);
        }
    }
    outcome
}

/// Packs what the node's members send to others, as the messages of their nodes.
///
/// # Safety
/// As [`swap_here`].
unsafe fn pack_for_nodes(
    group: &Group<'_>,
    spread: &Spread,
    round: &Round<'_>,
    send: &Blocks<'_>,
    block: u64,
) -> Result<Messages, EngineError> {
    let messages = Messages::new(group, spread, block)?;
    let mut number = 0;
    for node in 0..spread.nodes() {
        for place in 0..messages.members_here {
            // SAFETY: the caller's promise; the messages have room for so many blocks.
            unsafe {
                let blocks = match place {
                    0 => send,
                    _ => round.record::<Blocks<'_>>(place),
                };
                for &member in spread.members(node) {
                    if node != spread.here() {
                        let data = blocks.block(member as usize);
                        pack(data, 0, messages.at(number), block);
                    }
                    number += 1;
                }
            }
        }
    }
    Ok(messages)
}

/// Exchanges the messages with the other leaders.
fn exchange(
    group: &Group<'_>,
    spread: &Spread,
    outgoing: &Messages,
    incoming: &Messages,
) -> Result<(), EngineError> {
    let mut script = Script::new(group, None);
    let message = |of: &Messages, node: usize| {
        let before = (0..node).map(|node| spread.members(node).len()).sum();
        of.message(before, spread.members(node).len())
    };
    let (nodes, here) = (spread.nodes(), spread.here());
    let leader = |node: usize| spread.members(node)[0] as usize;
    for distance in 1..nodes {
        let from = (here + nodes - distance) % nodes;
        script.receive(leader(from), message(incoming, from));
    }
    for distance in 1..nodes {
        let to = (here + distance) % nodes;
        script.send(leader(to), message(outgoing, to));
    }
    // SAFETY: the messages are this call's.
    unsafe { script.run() }
}

/// Takes a member's blocks out of what has come from the other nodes.
///
/// # Safety
/// The messages have come; the blocks are live.
unsafe fn take(
    inner: &Group<'_>,
    spread: &Spread,
    incoming: &Messages,
    receive: &Blocks<'_>,
) -> Result<(), EngineError> {
    let (mut outcome, mut number) = (Ok(()), inner.me());
    for node in 0..spread.nodes() {
        for &member in spread.members(node) {
            if node != spread.here() {
                let into = receive.block(member as usize);
                // SAFETY: the caller's promise.
                let taken = unsafe { unpack_inline(into, incoming.at(number), 0, incoming.block) };
                outcome = outcome.and(taken);
            }
            number += incoming.members_here;
        }
    }
    outcome
}
