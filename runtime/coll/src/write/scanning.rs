//! Scans, along a chain or by doubling.

use super::builder::{ScheduleBuilder, Subgroup};
use super::reducing::is_grouped_by_rank;
use crate::args::{Reduction, Scan};
use crate::fold::Folder;
use crate::members::NodeMap;
use cohort_core::EngineError;
use cohort_core::rank::Rank;
use cohort_datatype::Buffer;
use cohort_datatype::op::Op;

/// The most members, or nodes, that pass prefixes on from one to the next whatever the setting: scans that follow each
/// other overlap so, and few messages are needed. The last of four gets its own after three messages in place of two.
pub(crate) const SCAN_CHAIN_MOST: usize = 4;

/// Whether each node may scan its operands first: the grouping does not matter, and nodes are in the order of members.
pub(crate) fn scans_by_node(rank: &Rank, call: &Reduction<'_>, map: &NodeMap) -> bool {
    map.is_in_order() && !is_grouped_by_rank(rank, call.op, call.datatype())
}

/// Steps of a scan.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub(crate) fn scan<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    folder: &Folder<'a>,
    call: &Reduction<'a>,
    kind: Scan,
) -> Result<(), EngineError> {
    let (_, size) = schedule.place();
    match size <= SCAN_CHAIN_MOST || is_grouped_by_rank(schedule.rank(), folder.op(), folder.datatype()) {
        true => scan_linear(schedule, folder, call, kind),
        false => {
            let everyone = schedule.everyone();
            scan_by_doubling(schedule, everyone, folder, (call, false), kind)
        }
    }
}

/// [`scan`] as within a node, `((operand[0] op operand[1]) op …)`: each member continues what the one before it has,
/// and waits for no later one.
fn scan_linear<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    folder: &Folder<'a>,
    call: &Reduction<'a>,
    kind: Scan,
) -> Result<(), EngineError> {
    let (me, size) = schedule.place();
    let (operand, result) = (call.operand(), call.result);
    let so_far = match kind {
        Scan::Inclusive => result,
        // The result would take its place.
        Scan::Exclusive if me > 0 && me + 1 < size => schedule.room(folder, call.count())?,
        Scan::Exclusive => operand,
    };
    if so_far.base() != operand.base() {
        schedule.copy(operand, so_far);
    }
    if me > 0 {
        let before = match kind {
            Scan::Inclusive => schedule.room(folder, call.count())?,
            Scan::Exclusive => result,
        };
        schedule.receive_operand(me - 1, before);
        schedule.wait();
        if kind == Scan::Inclusive || me + 1 < size {
            schedule.fold(before, so_far);
        }
    }
    if me + 1 < size {
        schedule.send(me + 1, so_far);
    }
    Ok(())
}

/// [`scan`] among a group in few steps: in step *k* a member learns the fold of the 2^*k* operands that end 2^*k*
/// members before its own. The caller's operand may be changed if the call says so.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
fn scan_by_doubling<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    group: Subgroup<'_>,
    folder: &Folder<'a>,
    (call, may_change): (&Reduction<'a>, bool),
    kind: Scan,
) -> Result<(), EngineError> {
    let Subgroup { me, size, .. } = group;
    let count = call.count();
    // In place the result would change an operand that is still to be sent.
    let is_in_place = call.input.is_none();
    // The fold of the operands from some member up to this one: its operand, until others are folded into a copy of it.
    let mut so_far = call.operand();
    let mut is_copy = may_change;
    if is_in_place && me + 1 < size {
        is_copy = true;
        so_far = schedule.room(folder, count)?;
        schedule.copy(call.operand(), so_far);
    }
    if kind == Scan::Inclusive {
        schedule.copy(call.operand(), call.result);
    }
    let mut has_output = kind == Scan::Inclusive;
    // Room for what comes before.
    let mut room = None;
    let mut distance = 1;
    while distance < size {
        if me + distance < size {
            schedule.send(group.at(me + distance), so_far);
        }
        let before = match has_output || is_in_place {
            _ if me < distance => None,
            true if room.is_none() => {
                room = Some(schedule.room(folder, count)?);
                room
            }
            true => room,
            false => Some(call.result),
        };
        if let Some(before) = before {
            schedule.receive_operand(group.at(me - distance), before);
        }
        schedule.wait();
        if let Some(before) = before {
            // For those that it still sends to.
            if me + 2 * distance < size {
                if !is_copy {
                    so_far = schedule.room(folder, count)?;
                    schedule.copy(call.operand(), so_far);
                    is_copy = true;
                }
                schedule.fold(before, so_far);
            }
            match has_output {
                true => schedule.fold(before, call.result),
                false if is_in_place => schedule.copy(before, call.result),
                false => {}
            }
            has_output = true;
        }
        distance *= 2;
    }
    Ok(())
}

/// Steps of the members that send and receive for their nodes in a scan: what nodes fold to is in the first buffer,
/// and what those before the caller's do comes to the other one; at the first node nothing does. The first one may be
/// changed if nobody else needs it.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub(crate) fn scan_before<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    group: Subgroup<'_>,
    folder: &Folder<'a>,
    op: Op<'a>,
    ([total, before], may_change): ([Buffer<'a>; 2], bool),
) -> Result<(), EngineError> {
    let totals = Reduction { input: Some(total.base().cast_const()), result: before, op };
    scan_by_doubling(schedule, group, folder, (&totals, may_change), Scan::Exclusive)
}
