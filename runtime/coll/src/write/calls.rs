//! Which writer an operation has.

use super::builder::{ScheduleBuilder, Subgroup};
use super::moving::{alltoall, alltoall_in_place, barrier, broadcast, gather, neighbours, scatter};
use super::reducing::{allreduce, folds_by_node, reduce, reduce_scatter, sends_to_all};
use super::scanning::{scan, scans_by_node};
use super::spreading::{DIRECT_MOST, allgather};
use crate::args::Call;
use crate::bundle::{BUNDLED_LEAST, longest_of_all};
use crate::fold::Folder;
use crate::members::NodeMap;
use alloc::vec::Vec;
use cohort_base::settings::Carriers;
use cohort_core::EngineError;
use cohort_core::rank::Rank;

/// Writes the steps of an operation in which each member sends and receives for itself; of a reducing one with its
/// folder.
pub(crate) fn write<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    call: &Call<'a>,
    folder: Option<&Folder<'a>>,
) -> Result<(), EngineError> {
    match folder {
        Some(folder) => write_fold(schedule, call, folder),
        None => write_moves(schedule, call),
    }
}

/// Steps of an operation that any group of members can do by itself, whose root, if it has one, is at place `root` of
/// the group.
///
/// # Errors
/// No memory; [`EngineError::Unsupported`] for the other operations.
pub(crate) fn write_among<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    group: Subgroup<'_>,
    call: &Call<'a>,
    folder: Option<&Folder<'a>>,
    root: usize,
) -> Result<(), EngineError> {
    match (call, folder) {
        (Call::Barrier, _) => {
            barrier(schedule, group);
            Ok(())
        }
        (Call::Bcast { buffer, .. }, _) => broadcast(schedule, group, *buffer, root),
        (Call::Reduce { reduction, .. }, Some(folder)) => reduce(schedule, group, folder, reduction, root),
        (Call::Allreduce { reduction }, Some(folder)) => allreduce(schedule, group, folder, reduction),
        _ => Err(EngineError::Unsupported),
    }
}

/// Members of a node, at most, that each send or receive their block of a gather or a scatter that does not block.
const DEALT_BY_NODE_MOST: usize = 8;

/// Members of a group, at most, that do so.
const DEALT_MOST: usize = 64;

/// Whether some members of a node may send and receive for others.
pub(crate) fn has_carriers(rank: &Rank, map: &NodeMap) -> bool {
    map.shares_nodes() && rank.node().settings().carriers != Carriers::Alone
}

/// Whether one member of each node sends and receives for all of them in an operation: the first one, its *leader*, or
/// the root for its own node, or in a blocking scan the last one. Kind, operation and places decide, which all members
/// know alike.
pub(crate) fn is_led(rank: &Rank, call: &Call<'_>, map: &NodeMap) -> bool {
    has_carriers(rank, map)
        && match call {
            Call::Barrier
            | Call::Bcast { .. }
            | Call::Allgather { .. }
            | Call::Gather { .. }
            | Call::Scatter { .. } => true,
            // Else hardly any block would go with others, and one member would send all.
            Call::Alltoall { .. } => longest_of_all(map.size()) >= BUNDLED_LEAST,
            Call::Reduce { reduction, .. } | Call::Allreduce { reduction } | Call::ReduceScatter { reduction, .. } => {
                folds_by_node(rank, reduction, map)
            }
            Call::Scan { reduction, .. } => scans_by_node(rank, reduction, map),
            _ => false,
        }
}

/// Whether the leaders have schedules for their nodes in an operation that does not block. In short groups a gather and
/// a scatter do without, unless the setting asks for leaders: no member waits for those of its node then, and what many
/// operations in a row send to a node goes together.
pub(crate) fn has_node_schedules(rank: &Rank, call: &Call<'_>, map: &NodeMap) -> bool {
    let is_dealt = matches!(call, Call::Gather { .. } | Call::Scatter { .. });
    let is_direct = is_dealt
        && rank.node().settings().carriers == Carriers::Auto
        && map.most_members() <= DEALT_BY_NODE_MOST
        && map.size() <= DEALT_MOST;
    !is_direct && is_led(rank, call, map)
}

/// The places of a group that the one at place `me` may exchange messages with in an operation whose leaders have
/// schedules for their nodes: in a gather and a scatter the root's; in a long group those a power of two away, the
/// root's and the first, unless operands are long.
pub(crate) fn partners(call: &Call<'_>, size: usize, me: usize, root: usize) -> Vec<usize> {
    if matches!(call, Call::Gather { .. } | Call::Scatter { .. }) && me != root {
        return [root].into();
    }
    let is_dealt_out = match call {
        Call::ReduceScatter { .. } => me == 0,
        Call::Gather { .. } | Call::Scatter { .. } | Call::Alltoall { .. } => true,
        _ => false,
    };
    let has_all =
        size <= DIRECT_MOST || is_dealt_out || call.reduction().is_some_and(|reduction| sends_to_all(size, reduction));
    if has_all {
        return (0..size).filter(|&place| place != me).collect();
    }
    let distances = core::iter::successors(Some(1), |distance| Some(distance * 2));
    let distances = distances.take_while(|&distance| distance < size);
    let around = distances.flat_map(|it| [(me + it) % size, (me + size - it) % size]);
    let mut places: Vec<usize> = around.chain([0, root]).collect();
    places.sort_unstable();
    places.dedup();
    places.retain(|&place| place != me);
    places
}

/// [`write`] for operations that fold.
fn write_fold<'a>(schedule: &mut ScheduleBuilder<'a>, call: &Call<'a>, folder: &Folder<'a>) -> Result<(), EngineError> {
    match call {
        Call::ReduceScatter { reduction, counts } => reduce_scatter(schedule, folder, reduction, counts),
        Call::Scan { reduction, kind } => scan(schedule, folder, reduction, *kind),
        _ => {
            let everyone = schedule.everyone();
            write_among(schedule, everyone, call, Some(folder), call.root())
        }
    }
}

/// [`write`] for operations that only move data.
fn write_moves<'a>(schedule: &mut ScheduleBuilder<'a>, call: &Call<'a>) -> Result<(), EngineError> {
    let (me, _) = schedule.place();
    match *call {
        Call::Gather { send, receive, root, .. } => gather(schedule, send, receive, root as usize),
        Call::Scatter { send, receive, root, .. } => scatter(schedule, send, receive, root as usize),
        Call::Allgather { send, receive } => {
            let own = receive.block(me);
            if let Some(send) = send {
                schedule.copy(send, own);
            }
            allgather(schedule, send.unwrap_or(own), receive)?;
        }
        Call::Alltoall { send, receive } => match send {
            Some(send) => {
                schedule.copy(send.block(me), receive.block(me));
                alltoall(schedule, send, receive);
            }
            None => alltoall_in_place(schedule, &receive)?,
        },
        Call::Neighbours { sources, destinations, send, to_all, receive } => {
            neighbours(schedule, (sources, receive), (destinations, send), to_all)
        }
        _ => {
            let everyone = schedule.everyone();
            write_among(schedule, everyone, call, None, call.root())?;
        }
    }
    Ok(())
}
