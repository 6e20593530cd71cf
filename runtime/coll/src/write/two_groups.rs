//! Collectives of intercommunicators as schedules: their nonblocking and persistent forms.
//!
//! The members of a schedule are both groups, one behind the other, in an order that both sides know. Data goes
//! straight to those that need it. Operands of a group are collected at its first member, its *leader*, which
//! folds them as the blocking forms do within a node.

use super::builder::{ScheduleBuilder, Subgroup};
use super::reducing::Operands;
use crate::args::{Call, Reduction};
use crate::fold::Folder;
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_datatype::Buffer;
use core::ops::Range;

/// Which members of a schedule are the caller's group, and which the other one.
#[derive(Clone, Debug)]
pub(crate) struct Sides {
    pub(crate) ours: Range<usize>,
    pub(crate) theirs: Range<usize>,
}

/// Writes the steps of an operation between two groups.
///
/// # Errors
/// No memory; [`EngineError::Unsupported`] for those that only one group can have.
pub(crate) fn write_between(
    schedule: &mut ScheduleBuilder<'static>,
    call: &Call<'static>,
    sides: &Sides,
    folder: Option<Folder<'static>>,
) -> Result<(), EngineError> {
    match folder {
        Some(folder) => write_fold(schedule, call, sides, &folder),
        None => write_moves(schedule, call, sides),
    }
}

/// [`write_between`] for operations that only move data.
fn write_moves(
    schedule: &mut ScheduleBuilder<'static>,
    call: &Call<'static>,
    Sides { theirs, .. }: &Sides,
) -> Result<(), EngineError> {
    let (me, _) = schedule.place();
    let is_there = |root: u32| theirs.contains(&(root as usize));
    let numbered = || theirs.clone().enumerate();
    match *call {
        Call::Barrier => {
            theirs.clone().for_each(|it| schedule.receive(it, Buffer::EMPTY));
            theirs.clone().for_each(|it| schedule.send(it, Buffer::EMPTY));
        }
        Call::Bcast { buffer, root } if root as usize == me => {
            theirs.clone().for_each(|it| schedule.send(it, buffer));
        }
        Call::Bcast { buffer, root } if is_there(root) => schedule.receive_value(root as usize, buffer),
        Call::Gather { send, receive, root, .. } => match (send, receive) {
            (_, Some(receive)) if root as usize == me => {
                numbered().for_each(|(number, it)| schedule.receive(it, receive.block(number)));
            }
            (Some(send), _) if is_there(root) => schedule.send(root as usize, send),
            _ => {}
        },
        Call::Scatter { send, receive, root, .. } => match (send, receive) {
            (Some(send), _) if root as usize == me => {
                numbered().for_each(|(number, it)| schedule.send(it, send.block(number)));
            }
            (_, Some(receive)) if is_there(root) => schedule.receive(root as usize, receive),
            _ => {}
        },
        Call::Allgather { send: Some(send), receive } => {
            numbered().for_each(|(number, it)| schedule.receive(it, receive.block(number)));
            theirs.clone().for_each(|it| schedule.send(it, send));
        }
        Call::Alltoall { send: Some(send), receive } => {
            numbered().for_each(|(number, it)| schedule.receive(it, receive.block(number)));
            numbered().for_each(|(number, it)| schedule.send(it, send.block(number)));
        }
        Call::Bcast { .. } => {}
        _ => return Err(EngineError::Unsupported),
    }
    Ok(())
}

/// [`write_between`] for operations that fold.
fn write_fold(
    schedule: &mut ScheduleBuilder<'static>,
    call: &Call<'static>,
    sides: &Sides,
    folder: &Folder<'static>,
) -> Result<(), EngineError> {
    let (me, _) = schedule.place();
    let Sides { ours, theirs } = sides;
    match call {
        Call::Reduce { reduction, root } if *root as usize == me => {
            schedule.receive_operand(theirs.start, reduction.result);
        }
        Call::Reduce { reduction, root } if theirs.contains(&(*root as usize)) => {
            if let Some(sum) = fold_at_leader(schedule, ours, folder, reduction)? {
                schedule.send(*root as usize, sum);
            }
        }
        Call::Reduce { .. } => {}
        Call::Allreduce { reduction } => {
            // Behind the fold, whose wait is for all messages before it.
            if let Some(sum) = fold_at_leader(schedule, ours, folder, reduction)? {
                theirs.clone().for_each(|it| schedule.send(it, sum));
            }
            schedule.receive_operand(theirs.start, reduction.result);
        }
        Call::ReduceScatter { reduction, counts } => {
            let output = reduction.of(counts[me - ours.start] as u64).result;
            let reduction = reduction.of(counts.iter().sum::<i64>() as u64);
            let sum = fold_at_leader(schedule, ours, folder, &reduction)?;
            match sum {
                Some(sum) => scatter_theirs(schedule, sides, folder, sum, counts, output)?,
                None => schedule.receive(ours.start, output),
            }
        }
        _ => return Err(EngineError::Unsupported),
    }
    Ok(())
}

/// Steps of a leader that has its group's sum: gets that of the other group, which is as long, and deals it out.
fn scatter_theirs(
    schedule: &mut ScheduleBuilder<'static>,
    Sides { ours, theirs }: &Sides,
    folder: &Folder<'static>,
    sum: Buffer<'static>,
    counts: &[i64],
    output: Buffer<'static>,
) -> Result<(), EngineError> {
    let received = schedule.room(folder, sum.count())?;
    schedule.receive_operand(theirs.start, received);
    schedule.send(theirs.start, sum);
    schedule.wait();
    schedule.copy(received.within(0..counts[0] as u64), output);
    let mut start = counts[0] as u64;
    for (member, &count) in ours.clone().zip(counts).skip(1) {
        let end = start + count as u64;
        schedule.send(member, received.within(start..end));
        start = end;
    }
    Ok(())
}

/// Steps that fold a group's operands at its leader, in rank order. Returns there where the result is.
fn fold_at_leader(
    schedule: &mut ScheduleBuilder<'static>,
    ours: &Range<usize>,
    folder: &Folder<'static>,
    call: &Reduction<'static>,
) -> Result<Option<Buffer<'static>>, EngineError> {
    let (me, _) = schedule.place();
    let members: Vec<usize> = ours.clone().collect();
    let group = Subgroup::of(&members, me - ours.start);
    let operands = Operands { group, folder, operand: call.operand() };
    let sum = operands.fold_linear(schedule)?;
    Ok((me == ours.start).then_some(sum))
}
