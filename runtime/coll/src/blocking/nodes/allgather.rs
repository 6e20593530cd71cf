//! Allgather in which one member of each node, its *leader*, exchanges the blocks of all with the other leaders.
//!
//! The leaders exchange [`Bundle`]s of their nodes' blocks, from which all members take what they want. A bundle says
//! which blocks are not in it because they are long. A leader sends those from where its members have them, and
//! receives those of others into its own buffer, from which its members copy. Who sends decides that, and a receiver
//! learns it from the bundle: so members that disagree about lengths do not wait for each other.

use super::gather::{collect, post_to};
use crate::args::Blocks;
use crate::blocking::round::{Finish, Posted, Record, Round};
use crate::blocking::schedule::{builder, run};
use crate::bundle::{Bundle, Content};
use crate::bytes::Bytes;
use crate::data::{copy_whole, fits};
use crate::members::{Caller, Hierarchy};
use crate::memory::{bytes, reserve};
use crate::write::{Subgroup, exchange, exchange_apart};
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_datatype::{Buffer, copy};
use core::ops::Range;

/// The longest block that goes with others. It is copied twice more than one that travels by itself, which waits for
/// the bundle and is a message to each other node: of three and four nodes that share CPUs that costs more than the
/// copies.
fn most_bundled(nodes: usize) -> u64 {
    if nodes > 2 { 128 << 10 } else { 48 << 10 }
}

/// What a leader shows the members of its node: the bundles of all nodes, one behind the other, and its own buffer.
struct Bundles<'a> {
    _memory: Vec<u8>,
    bytes: Bytes,
    /// Where each node's begins, and where the last one ends.
    starts: Vec<u64>,
    all: Vec<Bundle>,
    /// The longest block in one of them.
    most: u64,
    receive: Blocks<'a>,
}

// SAFETY: no other record has this number.
unsafe impl Record for Bundles<'_> {
    const NUMBER: u64 = 6;
}

impl<'a> Bundles<'a> {
    /// Room for what an allgather brings.
    fn for_blocks(hierarchy: &Hierarchy, receive: &Blocks<'a>) -> Result<Self, EngineError> {
        let most = most_bundled(hierarchy.nodes());
        let data = |node: usize| {
            let lengths = hierarchy.members(node).iter();
            lengths.map(|&member| receive.block(member as usize).bytes().min(most)).sum::<u64>()
        };
        let length = |node| Bundle::bytes(hierarchy.members(node).len(), data(node));
        let (memory, bytes) = bytes((0..hierarchy.nodes()).map(length).sum())?;
        let mut all = reserve(hierarchy.nodes())?;
        let mut starts = reserve(hierarchy.nodes() + 1)?;
        let mut at = 0;
        starts.push(at);
        for node in 0..hierarchy.nodes() {
            let blocks = hierarchy.members(node).len();
            all.push(Bundle::at(bytes.part(at, length(node)), blocks, most));
            at += length(node);
            starts.push(at);
        }
        Ok(Self { _memory: memory, bytes, starts, all, most, receive: *receive })
    }

    /// Those of consecutive nodes.
    fn several(&self, nodes: Range<usize>) -> Buffer<'static> {
        let (start, end) = (self.starts[nodes.start], self.starts[nodes.end]);
        self.bytes.part(start, end - start).buffer()
    }
}

/// Allgather.
pub(crate) fn allgather(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    send: Option<Buffer<'_>>,
    receive: &Blocks<'_>,
) -> Result<(), EngineError> {
    let here = group.local(hierarchy);
    let own = receive.block(group.me());
    let placed = send.map_or(Ok(()), |send| copy_whole(own, send));
    let send = send.unwrap_or(own);
    if here.me != 0 {
        post_to(&here, 0, &send);
        let round = Round::begin(&here);
        round.await_member(0);
        let outcome = deliver_all(group, hierarchy, round.record::<Bundles<'_>>(0), receive);
        round.finish(Finish::Nobody);
        return placed.and(outcome);
    }
    let bundles = Bundles::for_blocks(hierarchy, receive)?;
    let round = Round::begin(&here);
    round.await_all();
    let mut outcome = exchange_bundles(group, hierarchy, (&round, &send), &bundles);
    round.finish(Finish::Nobody);
    let round = Round::begin(&here);
    round.post_address(&bundles);
    round.announce();
    outcome = outcome.and(deliver_all(group, hierarchy, &bundles, receive));
    round.finish(Finish::Everyone);
    placed.and(outcome)
}

/// A leader's exchange with the others, in the round to which its members have posted their blocks.
fn exchange_bundles(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    (round, send): (&Round<'_>, &Buffer<'_>),
    bundles: &Bundles<'_>,
) -> Result<(), EngineError> {
    let (_memory, bundle) = collect(&group.local(hierarchy), round, send, bundles.most)?;
    let this_node = hierarchy.this_node();
    let mut schedule = builder(group, None);
    schedule.copy(bundle.buffer(), bundles.all[this_node].buffer());
    exchange(&mut schedule, Subgroup::of_leaders(hierarchy, 0), |nodes| bundles.several(nodes));
    let posted = |place: usize| match round.posted::<Buffer<'_>>(place) {
        Posted::Address(block) => *block,
        // SAFETY: it is only read, before the round is completed.
        Posted::Inline(data) => unsafe { Bytes::new(data.as_ptr().cast_mut(), data.len() as u64) }.buffer(),
    };
    // The leader itself has posted nothing.
    let block = |place: usize| if place == 0 { *send } else { posted(place) };
    exchange_apart(&mut schedule, hierarchy, (&bundles.all, bundles.most), block, &bundles.receive);
    run(group.owner, schedule)
}

/// Delivers the blocks of all other members, from bundles that are filled, or where the leader has them.
fn deliver_all(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    bundles: &Bundles<'_>,
    receive: &Blocks<'_>,
) -> Result<(), EngineError> {
    let here = hierarchy.this_node();
    let is_leader = group.me == hierarchy.members(here)[0];
    let mut outcome = Ok(());
    for (node, bundle) in bundles.all.iter().enumerate() {
        for (&member, content) in hierarchy.members(node).iter().zip(bundle.contents()) {
            if member == group.me {
                continue;
            }
            let into = receive.block(member as usize);
            outcome = outcome.and(match content {
                Content::Inside { .. } => content.deliver(into),
                Content::Apart { .. } if is_leader => Ok(()),
                Content::Apart { length } => {
                    copy(into, bundles.receive.block(member as usize), 0, length);
                    fits(length, into)
                }
            });
        }
    }
    outcome
}
