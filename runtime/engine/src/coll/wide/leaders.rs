//! Collectives in which one member of each node speaks for all of them.
//!
//! The members of a node share memory, so what they have to say to each other goes the way of
//! collectives within a node; only the leaders send messages.

use super::moving::{meet, pass_on};
use super::reducing;
use super::script::{Line, Script};
use super::spread::Homes;
use super::{Group, Spread};
use crate::EngineError;
use crate::coll::fold::{Folder, Scratch};
use crate::coll::{self, Blocks, Reduction};
use crate::datatype::Layout;
use crate::op::Op;
use crate::rank::Rank;
use alloc::vec::Vec;
use cohort_base::settings::ReduceOrder;
use core::ops::Range;

/// Barrier: the node's members, then the leaders, then the node's members again.
pub(in crate::coll) fn barrier(group: &Group<'_>, spread: &Spread) -> Result<(), EngineError> {
    let inner = spread.inner(group);
    let leaders = spread.leaders(0);
    coll::barrier(&inner)?;
    if leaders[spread.here()] == group.me() {
        let mut script = Script::new(group, None);
        meet(&mut script, Line::of(&leaders, spread.here()));
        // SAFETY: messages without data.
        unsafe { script.run()? };
    }
    coll::barrier(&inner)
}

/// Broadcast: to the leaders, and from each within its node.
///
/// # Safety
/// As [`bcast`](crate::coll::bcast).
pub(in crate::coll) unsafe fn bcast(
    group: &Group<'_>,
    spread: &Spread,
    buffer: Layout<'_>,
    root: u32,
) -> Result<(), EngineError> {
    let leaders = spread.leaders(root as usize);
    let leader = leaders[spread.here()];
    let mut outcome = Ok(());
    if leader == group.me() {
        let mut script = Script::new(group, None);
        let line = Line::of(&leaders, spread.here());
        pass_on(&mut script, line, buffer, spread.home(root as usize))?;
        // SAFETY: the caller's promise.
        outcome = unsafe { script.run() };
    }
    let inner = spread.inner(group);
    // SAFETY: the caller's promise.
    outcome.and(unsafe { coll::bcast(&inner, buffer, spread.place_here(leader)) })
}

/// Whether each node may fold its operands first: the setting allows it, and the order of operands does not
/// matter or is kept.
pub(super) fn folds_by_node(rank: &Rank, op: Op<'_>, homes: &Homes) -> bool {
    rank.node().settings().reduce_order == ReduceOrder::Nodes
        && (op.commutative() || homes.is_in_order())
}

/// An outcome to report at the end, after which the caller goes on; or an error that ends the call at once.
fn unless_truncated(
    outcome: Result<(), EngineError>,
) -> Result<Result<(), EngineError>, EngineError> {
    match outcome {
        Ok(()) | Err(EngineError::Truncated { .. }) => Ok(outcome),
        Err(error) => Err(error),
    }
}

/// Allreduce: within the node, among the leaders, and back.
///
/// # Safety
/// As [`allreduce`](crate::coll::allreduce).
pub(in crate::coll) unsafe fn allreduce(
    group: &Group<'_>,
    spread: &Spread,
    folder: &Folder<'_>,
    call: &Reduction<'_>,
) -> Result<(), EngineError> {
    if !folds_by_node(group.rank, call.op, spread) {
        let mut script = Script::new(group, Some(*folder));
        let everyone = script.everyone();
        reducing::allreduce(&mut script, everyone, folder, call)?;
        // SAFETY: the caller's promise.
        return unsafe { script.run() };
    }
    let inner = spread.inner(group);
    let leaders = spread.leaders(0);
    // SAFETY: the caller's promise; the leader's output is its operand in the second step.
    unsafe {
        // Members that disagree about the size have folded nothing, and go on: others wait for them.
        let mut outcome = unless_truncated(coll::reduce(&inner, call, 0))?;
        if leaders[spread.here()] == group.me() {
            let line = Line::of(&leaders, spread.here());
            let in_place = Reduction {
                input: None,
                ..*call
            };
            let mut script = Script::new(group, Some(*folder));
            reducing::allreduce(&mut script, line, folder, &in_place)?;
            outcome = outcome.and(script.run());
        }
        outcome.and(coll::bcast(
            &inner,
            folder.layout(call.output, call.count),
            0,
        ))
    }
}

/// Reduce: within the node, and among the leaders to the root's.
///
/// # Safety
/// As [`reduce`](crate::coll::reduce).
pub(in crate::coll) unsafe fn reduce(
    group: &Group<'_>,
    spread: &Spread,
    folder: &Folder<'_>,
    call: &Reduction<'_>,
    root: usize,
) -> Result<(), EngineError> {
    if !folds_by_node(group.rank, call.op, spread) {
        let mut script = Script::new(group, Some(*folder));
        let everyone = script.everyone();
        reducing::reduce(&mut script, everyone, folder, call, root)?;
        // SAFETY: the caller's promise.
        return unsafe { script.run() };
    }
    let leaders = spread.leaders(root);
    let leader = leaders[spread.here()];
    let (is_leader, is_root) = (group.me() == leader, group.me() == root);
    // Only the root has an output.
    let scratch = match is_leader && !is_root {
        true => Some(Scratch::new(folder, call.count)?),
        false => None,
    };
    let output = scratch.as_ref().map_or(call.output, |it| it.base);
    // SAFETY: the caller's promise; the leader's output is its operand in the second step.
    unsafe {
        let here = Reduction { output, ..*call };
        let inner = spread.inner(group);
        let outcome = unless_truncated(coll::reduce(&inner, &here, spread.place_here(leader)))?;
        if !is_leader {
            return outcome;
        }
        let in_place = Reduction {
            input: None,
            ..here
        };
        let line = Line::of(&leaders, spread.here());
        let mut script = Script::new(group, Some(*folder));
        reducing::reduce(&mut script, line, folder, &in_place, spread.home(root))?;
        outcome.and(script.run())
    }
}

/// Reduce-scatter: within the node, among the leaders, and each result to its member.
///
/// # Safety
/// As [`reduce_scatter`](crate::coll::reduce_scatter); `call.count` is the sum of `counts`.
pub(in crate::coll) unsafe fn reduce_scatter(
    group: &Group<'_>,
    spread: &Spread,
    folder: &Folder<'_>,
    call: &Reduction<'_>,
    counts: &[i64],
) -> Result<(), EngineError> {
    if !folds_by_node(group.rank, call.op, spread) {
        let mut script = Script::new(group, Some(*folder));
        reducing::reduce_scatter(&mut script, folder, call, counts)?;
        // SAFETY: the caller's promise.
        return unsafe { script.run() };
    }
    let inner = spread.inner(group);
    let own = folder.layout(call.output, counts[group.me()] as u64);
    let here = Reduction {
        input: Some(call.operand()),
        output: core::ptr::null_mut(),
        ..*call
    };
    let leaders = spread.leaders(0);
    // SAFETY: the caller's promise; only the leader's reduce has an output, which is its operand in the second step.
    unsafe {
        if leaders[spread.here()] != group.me() {
            let outcome = unless_truncated(coll::reduce(&inner, &here, 0))?;
            return outcome.and(coll::scatter(&inner, None, Some(own), 0));
        }
        let scratch = Scratch::new(folder, call.count)?;
        let folded = Reduction {
            output: scratch.base,
            ..here
        };
        let outcome = unless_truncated(coll::reduce(&inner, &folded, 0))?;
        let in_place = Reduction {
            input: None,
            ..folded
        };
        let line = Line::of(&leaders, spread.here());
        let mut script = Script::new(group, Some(*folder));
        let homes: &Homes = spread;
        reducing::reduce_scatter_of_nodes(&mut script, (homes, line), folder, &in_place, counts)?;
        let outcome = outcome.and(script.run());
        let (lengths, places) = results_here(spread, counts);
        let results = Blocks::Varying {
            base: scratch.base,
            counts: &lengths,
            displacements: &places,
            datatype: call.datatype,
        };
        outcome.and(coll::scatter(&inner, Some(results), Some(own), 0))
    }
}

/// How many elements of a result each member of this node gets, and at which one they begin.
fn results_here(homes: &Homes, counts: &[i64]) -> (Vec<i64>, Vec<i64>) {
    let members = homes.members(homes.here()).iter();
    let of = |&member: &u32| {
        let Range { start, end } =
            reducing::elements_of(counts, member as usize..member as usize + 1);
        ((end - start) as i64, start as i64)
    };
    members.map(of).unzip()
}
