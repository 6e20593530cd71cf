//! Collectives in which one member of each node, its *leader*, sends and receives for all of them, for callers that
//! wait: what the node's members do together, what the leaders do, and what the members do then.

use super::builder::{ScheduleBuilder, Subgroup};
use super::calls::write_among;
use super::reducing::reduce_scatter_of_nodes;
use crate::args::{Blocks, Call, Reduction, elements_of};
use crate::fold::Folder;
use crate::members::NodeMap;
use crate::schedule::{Endpoint, Schedule};
use alloc::vec::Vec;
use cohort_core::EngineError;
use core::cell::OnceCell;

/// One member's part, in three stages of which each may be missing.
pub(crate) struct Led<'a> {
    /// What the node's members do first: their operands become the leader's.
    pub(crate) before: Option<Call<'a>>,
    /// The leader's messages.
    pub(crate) among: Option<Schedule<'a>>,
    /// How its result comes to the node's members.
    pub(crate) after: Option<Call<'a>>,
}

/// How many elements of a result each member of the node gets, and at which one they begin.
pub(crate) type Shares = (Vec<i64>, Vec<i64>);

/// Writes the member's part of a barrier, a broadcast, or an operation that folds by nodes, with its folder. `shares`
/// is where the leader of a reduce-scatter keeps what its call refers to.
///
/// # Errors
/// No memory; [`EngineError::Unsupported`] for other operations.
pub(crate) fn write_led<'a>(
    endpoint: Endpoint<'a>,
    map: &NodeMap,
    call: &Call<'a>,
    folder: Option<Folder<'a>>,
    shares: &'a OnceCell<Shares>,
) -> Result<Led<'a>, EngineError> {
    let (me, leader) = (endpoint.me as usize, leader_here(map, call.root()));
    let place = map.local_rank(leader);
    let mut schedule = (me == leader).then(|| ScheduleBuilder::new(endpoint, folder));
    // What the leaders do begins where the first stage ends: with the leader's result as its operand.
    let (before, among, after) = match *call {
        Call::Barrier => (Some(*call), *call, Some(*call)),
        Call::Bcast { buffer, .. } => (None, *call, Some(Call::Bcast { buffer, root: place })),
        Call::Allreduce { reduction } => (
            Some(Call::Reduce { reduction, root: place }),
            Call::Allreduce { reduction: reduction.in_place() },
            Some(Call::Bcast { buffer: reduction.result, root: place }),
        ),
        Call::Reduce { reduction, root } => {
            let is_root = me == root as usize;
            let reduction = with_result(schedule.as_mut().filter(|_| !is_root), folder.as_ref(), reduction)?;
            let among = Call::Reduce { reduction: reduction.in_place(), root };
            (Some(Call::Reduce { reduction, root: place }), among, None)
        }
        Call::ReduceScatter { reduction, counts } => {
            let own = reduction.of(counts[me] as u64).result;
            let input = Some(reduction.operand().base().cast_const());
            let reduction = with_result(schedule.as_mut(), folder.as_ref(), Reduction { input, ..reduction })?;
            let send = schedule.is_some().then(|| {
                let (lengths, starts) = shares.get_or_init(|| shares_here(map, counts));
                // SAFETY: the result has all elements, and the schedule keeps it.
                unsafe { Blocks::varying(reduction.output(), (lengths, starts), reduction.datatype()) }
            });
            let among = Call::ReduceScatter { reduction: reduction.in_place(), counts };
            let after = Call::Scatter { send, receive: Some(own), root: place, is_even: false };
            (Some(Call::Reduce { reduction, root: place }), among, Some(after))
        }
        _ => return Err(EngineError::Unsupported),
    };
    if let Some(schedule) = &mut schedule {
        let leaders = Subgroup::of_leaders(map, call.root());
        match (among, &folder) {
            (Call::ReduceScatter { reduction, counts }, Some(folder)) => {
                reduce_scatter_of_nodes(schedule, (map, leaders), folder, &reduction, counts)?;
            }
            _ => write_among(schedule, leaders, &among, folder.as_ref(), map.node_of(call.root()))?,
        }
    }
    Ok(Led { before, among: schedule.map(ScheduleBuilder::done), after })
}

/// This node's leader in an operation with this root.
fn leader_here(map: &NodeMap, root: usize) -> usize {
    match map.node_of(root) == map.this_node() {
        true => root,
        false => map.local_members()[0] as usize,
    }
}

/// The reduction with its result in memory of the leader's schedule, if there is a schedule.
fn with_result<'a>(
    schedule: Option<&mut ScheduleBuilder<'a>>,
    folder: Option<&Folder<'a>>,
    reduction: Reduction<'a>,
) -> Result<Reduction<'a>, EngineError> {
    match (schedule, folder) {
        (Some(schedule), Some(folder)) => {
            let result = schedule.room(folder, reduction.count())?;
            Ok(Reduction { result, ..reduction })
        }
        _ => Ok(reduction),
    }
}

/// What each member of this node gets of a result.
fn shares_here(map: &NodeMap, counts: &[i64]) -> Shares {
    let shares = map.local_members().iter().map(|&member| {
        let share = elements_of(counts, member as usize..member as usize + 1);
        ((share.end - share.start) as i64, share.start as i64)
    });
    shares.unzip()
}
