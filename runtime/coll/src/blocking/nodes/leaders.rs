//! Collectives in which one member of each node, its leader, sends and receives for all of them, and the node's members
//! do the rest as within a node.

use crate::args::{Blocks, Call, Reduction, elements_of};
use crate::blocking::local;
use crate::blocking::script::{builder, run, run_alone};
use crate::fold::Folder;
use crate::members::{Caller, Hierarchy, NodeMap};
use crate::memory::Scratch;
use crate::write::{Subgroup, folds_by_node, reduce_scatter_of_nodes, write_among};
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_datatype::Buffer;
use core::ops::Range;

/// At a leader: runs an operation among all leaders. Its root is that of the node of member `root`.
fn run_among_leaders(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    call: &Call<'_>,
    root: usize,
) -> Result<(), EngineError> {
    let folder = call.folder()?;
    let among = Subgroup::of_leaders(hierarchy, root);
    let mut script = builder(group, folder);
    let root = hierarchy.node_of(root);
    write_among(&mut script, among, call, folder.as_ref(), root)?;
    run(group.owner, script)
}

/// Barrier: the node's members, then the leaders, then the node's members again.
///
/// # Errors
/// No memory.
pub(crate) fn barrier(group: &Caller<'_>, hierarchy: &Hierarchy) -> Result<(), EngineError> {
    let here = group.local(hierarchy);
    local::run_any(&here, &Call::Barrier)?;
    if here.me == 0 {
        run_among_leaders(group, hierarchy, &Call::Barrier, 0)?;
    }
    local::run_any(&here, &Call::Barrier)
}

/// Broadcast: to the leaders, and from each within its node.
///
/// # Errors
/// As [`bcast`](crate::bcast).
pub(crate) fn bcast(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    buffer: Buffer<'_>,
    root: usize,
) -> Result<(), EngineError> {
    let leader = leader_here(hierarchy, root);
    let mut outcome = Ok(());
    if leader == group.me() {
        let root_number = root as u32;
        let call = Call::Bcast { buffer, root: root_number };
        outcome = run_among_leaders(group, hierarchy, &call, root);
    }
    let root = hierarchy.local_rank(leader);
    outcome.and(local::run_any(&group.local(hierarchy), &Call::Bcast { buffer, root }))
}

/// This node's leader.
fn leader_here(hierarchy: &Hierarchy, root: usize) -> usize {
    match hierarchy.node_of(root) == hierarchy.this_node() {
        true => root,
        false => hierarchy.local_members()[0] as usize,
    }
}

/// An outcome to report at the end, after which the caller goes on; or an error that ends the call at once.
fn unless_truncated(outcome: Result<(), EngineError>) -> Result<Result<(), EngineError>, EngineError> {
    match outcome {
        Ok(()) | Err(EngineError::Truncated { .. }) => Ok(outcome),
        Err(error) => Err(error),
    }
}

/// Allreduce: within the node, among the leaders, and back.
///
/// # Errors
/// As [`allreduce`](crate::allreduce).
pub(crate) fn allreduce(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    reduction: &Reduction<'_>,
) -> Result<(), EngineError> {
    let reduction = *reduction;
    if !folds_by_node(group.rank(), &reduction, hierarchy) {
        return run_alone(group, &Call::Allreduce { reduction });
    }
    let here = group.local(hierarchy);
    // Members that disagree about the size have folded nothing, and go on: others wait for them.
    let folded = local::run_any(&here, &Call::Reduce { reduction, root: 0 });
    let mut outcome = unless_truncated(folded)?;
    if here.me == 0 {
        let reduction = reduction.in_place();
        let call = Call::Allreduce { reduction };
        outcome = outcome.and(run_among_leaders(group, hierarchy, &call, 0));
    }
    let buffer = reduction.result;
    outcome.and(local::run_any(&here, &Call::Bcast { buffer, root: 0 }))
}

/// Reduce: within the node, and among the leaders to the root's.
///
/// # Errors
/// As [`reduce`](crate::reduce).
pub(crate) fn reduce(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    reduction: &Reduction<'_>,
    root: u32,
) -> Result<(), EngineError> {
    // SAFETY: the scratch has room for the result; the leader's output is its operand in the second step.
    unsafe {
        if !folds_by_node(group.rank(), reduction, hierarchy) {
            let reduction = *reduction;
            return run_alone(group, &Call::Reduce { reduction, root });
        }
        let leader = leader_here(hierarchy, root as usize);
        let is_leader = group.me() == leader;
        // Only the root has an output.
        let scratch = match is_leader && group.me != root {
            true => {
                let folder = Folder::new(reduction.op, reduction.datatype())?;
                Some(Scratch::new(&folder, reduction.count())?)
            }
            false => None,
        };
        let output = scratch.as_ref().map_or(reduction.output(), |it| it.base);
        let reduction = reduction.to(output);
        let to_leader = Call::Reduce { reduction, root: hierarchy.local_rank(leader) };
        let outcome = unless_truncated(local::run_any(&group.local(hierarchy), &to_leader))?;
        if !is_leader {
            return outcome;
        }
        let reduction = reduction.in_place();
        let call = Call::Reduce { reduction, root };
        outcome.and(run_among_leaders(group, hierarchy, &call, root as usize))
    }
}

/// Reduce-scatter: within the node, among the leaders, and each result to its member.
///
/// # Errors
/// As [`reduce_scatter`](crate::reduce_scatter).
pub(crate) fn reduce_scatter(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    call: &Reduction<'_>,
    counts: &[i64],
) -> Result<(), EngineError> {
    // SAFETY: the scratch has room for the result; only the leader's reduce has an output, which is its operand in the
    // second step.
    unsafe {
        if !folds_by_node(group.rank(), call, hierarchy) {
            let reduction = *call;
            return run_alone(group, &Call::ReduceScatter { reduction, counts });
        }
        let folder = Folder::new(call.op, call.datatype())?;
        let here = group.local(hierarchy);
        let own = folder.buffer(call.output(), counts[group.me()] as u64);
        let scratch = match here.me {
            0 => Some(Scratch::new(&folder, call.count())?),
            _ => None,
        };
        let output = scratch.as_ref().map_or(core::ptr::null_mut(), |it| it.base);
        let reduction = Reduction { input: Some(call.operand().base()), ..call.to(output) };
        let to_leader = Call::Reduce { reduction, root: 0 };
        let mut outcome = unless_truncated(local::run_any(&here, &to_leader))?;
        let mut send = None;
        let (lengths, places);
        if here.me == 0 {
            let among = Subgroup::of_leaders(hierarchy, 0);
            let mut script = builder(group, Some(folder));
            let in_place = reduction.in_place();
            let nodes: &NodeMap = hierarchy;
            reduce_scatter_of_nodes(&mut script, (nodes, among), &folder, &in_place, counts)?;
            outcome = outcome.and(run(group.owner, script));
            (lengths, places) = results_here(hierarchy, counts);
            send = Some(Blocks::varying(output, (&lengths, &places), call.datatype()));
        }
        let scatter = Call::Scatter { send, receive: Some(own), root: 0 };
        outcome.and(local::run_any(&here, &scatter))
    }
}

/// How many elements of a result each member of this node gets, and at which one they begin.
fn results_here(map: &NodeMap, counts: &[i64]) -> (Vec<i64>, Vec<i64>) {
    let members = map.local_members().iter();
    let of = |&member: &u32| {
        let Range { start, end } = elements_of(counts, member as usize..member as usize + 1);
        ((end - start) as i64, start as i64)
    };
    members.map(of).unzip()
}
