//! What all members say, in one table for all members of a node: an allgather whose result nobody keeps.

use super::gather::post_to;
use crate::blocking::round::{Finish, Record, Round};
use crate::blocking::schedule::{builder, run};
use crate::members::{Caller, Hierarchy, LocalGroup};
use crate::memory::reserve;
use crate::write::{Subgroup, exchange_even};
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_datatype::Buffer;
use core::ops::Range;

/// What one member says.
type Words<const N: usize> = [i32; N];

/// What the leader posts: the words of all members, `each` of each.
struct Table<'a> {
    words: Result<&'a [i32], EngineError>,
    each: usize,
}

// SAFETY: no other record has this number.
unsafe impl Record for Table<'_> {
    const NUMBER: u64 = 7;
}

fn buffer<const N: usize>(words: &mut [Words<N>]) -> Buffer<'static> {
    // SAFETY: the words are borrowed by the caller, who keeps them until the message is complete.
    unsafe { Buffer::of_bytes(words.as_mut_ptr().cast(), size_of_val(words) as u64) }
}

/// Calls `read` with what each member says, by rank. The leader of each node makes the table, and the others look at
/// it there.
pub(crate) fn view<const N: usize, R>(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    mut mine: Words<N>,
    read: impl FnOnce(&[Words<N>]) -> R,
) -> Result<R, EngineError> {
    let here = group.local(hierarchy);
    if here.me != 0 {
        post_to(&here, 0, &buffer(core::slice::from_mut(&mut mine)));
        let round = Round::begin(&here);
        round.await_member(0);
        let table = round.record::<Table<'_>>(0);
        if table.each != N {
            round.end_crossed(0, group.label);
        }
        let result = table.words.map(|words| read(words.as_chunks().0));
        round.finish(Finish::Nobody);
        return result;
    }
    let table = fill(group, hierarchy, &here, mine);
    let round = Round::begin(&here);
    let words = match &table {
        Ok(table) => Ok(table.as_flattened()),
        Err(error) => Err(*error),
    };
    let posted = Table { words, each: N };
    round.post_address(&posted);
    round.announce();
    let result = words.map(|words| read(words.as_chunks().0));
    round.finish(Finish::Everyone);
    result
}

/// The table, at the leader.
fn fill<const N: usize>(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    here: &LocalGroup<'_>,
    mine: Words<N>,
) -> Result<Vec<Words<N>>, EngineError> {
    let near = take_near(here, mine)?;
    let mut table = room(group.size())?;
    // Words travel in the order of nodes. Mostly that is the order of members.
    let mut elsewhere = match hierarchy.is_in_order() {
        true => Vec::new(),
        false => room(group.size())?,
    };
    let travelling = match elsewhere.is_empty() {
        true => &mut table[..],
        false => &mut elsewhere[..],
    };
    let mut starts = reserve(hierarchy.nodes() + 1)?;
    starts.push(0);
    for node in 0..hierarchy.nodes() {
        starts.push(starts[node] + hierarchy.members(node).len());
    }
    travelling[starts[hierarchy.this_node()]..][..near.len()].copy_from_slice(&near);
    let whole = buffer(travelling).base();
    let part = |nodes: Range<usize>| {
        let (start, end) = (starts[nodes.start], starts[nodes.end]);
        let bytes = size_of::<Words<N>>();
        // SAFETY: the table has these rows, and stays until the schedule has ended.
        unsafe { Buffer::of_bytes(whole.wrapping_add(start * bytes), ((end - start) * bytes) as u64) }
    };
    let among = Subgroup::of_leaders(hierarchy, 0);
    let mut schedule = builder(group, None);
    exchange_even(&mut schedule, among, part);
    run(group.owner, schedule)?;
    let members = (0..hierarchy.nodes()).flat_map(|node| hierarchy.members(node));
    for (words, &member) in elsewhere.iter().zip(members) {
        table[member as usize] = *words;
    }
    Ok(table)
}

/// What the members of this node say.
fn take_near<const N: usize>(here: &LocalGroup<'_>, mine: Words<N>) -> Result<Vec<Words<N>>, EngineError> {
    let mut outcome = Ok(());
    let mut near = room(here.size())?;
    let round = Round::begin(here);
    round.await_all();
    for (place, words) in near.iter_mut().enumerate() {
        if place == here.me() {
            *words = mine;
            continue;
        }
        let taken = round.receive_buffer(place, buffer(core::slice::from_mut(words)));
        outcome = outcome.and(taken);
    }
    round.finish(Finish::Nobody);
    outcome.map(|()| near)
}

fn room<const N: usize>(count: usize) -> Result<Vec<Words<N>>, EngineError> {
    let mut words = reserve(count)?;
    words.resize(count, [0; N]);
    Ok(words)
}
