//! Collectives that fold operands, always in rank order.

use super::moving::{deal_out, pass_on};
use super::script::Line;
use super::{Group, Script};
use crate::EngineError;
use crate::coll::fold::Folder;
use crate::coll::{Blocks, Reduction, Scan};
use alloc::vec::Vec;

/// Steps that fold everybody's operands at the first of a line, along a binomial tree of neighbours. Returns
/// where the result is there; elsewhere that memory is of no use.
pub(super) fn fold_at_first<'a>(
    script: &mut Script<'a>,
    line: Line<'_>,
    folder: &Folder<'a>,
    operand: *const u8,
    count: u64,
) -> Result<*mut u8, EngineError> {
    let Line { me, size, .. } = line;
    let mut sum = script.room(folder, count)?;
    script.copy(folder.layout(operand, count), folder.layout(sum, count));
    let mut other = None;
    let mut distance = 1;
    while distance < size {
        if me & distance != 0 {
            script.send(line.at(me - distance), folder.layout(sum, count));
            script.wait();
            break;
        }
        if me + distance < size {
            let theirs = match other {
                Some(room) => room,
                None => script.room(folder, count)?,
            };
            script.receive(line.at(me + distance), folder.layout(theirs, count));
            script.wait();
            script.fold(sum, theirs, count);
            other = Some(sum);
            sum = theirs;
        }
        distance *= 2;
    }
    Ok(sum)
}

/// Reduce among a line: folded at its first member, and sent on to the one at place `root`.
///
/// # Safety
/// As [`reduce`](crate::coll::reduce).
pub(super) unsafe fn reduce(
    group: &Group<'_>,
    line: Line<'_>,
    folder: &Folder<'_>,
    call: &Reduction<'_>,
    root: usize,
) -> Result<(), EngineError> {
    let mut script = Script::new(group, Some(*folder));
    let count = call.count;
    let sum = fold_at_first(&mut script, line, folder, call.operand(), count)?;
    let (sum, output) = (folder.layout(sum, count), folder.layout(call.output, count));
    match (line.me, root) {
        (0, 0) => script.copy(sum, output),
        (0, _) => script.send(line.at(root), sum),
        (me, _) if me == root => script.receive(line.at(0), output),
        _ => {}
    }
    // SAFETY: the caller's promise.
    unsafe { script.run() }
}

/// Allreduce among a line: folded at its first member, and broadcast.
///
/// # Safety
/// As [`allreduce`](crate::coll::allreduce).
pub(super) unsafe fn allreduce(
    group: &Group<'_>,
    line: Line<'_>,
    folder: &Folder<'_>,
    call: &Reduction<'_>,
) -> Result<(), EngineError> {
    let mut script = Script::new(group, Some(*folder));
    let output = folder.layout(call.output, call.count);
    let sum = fold_at_first(&mut script, line, folder, call.operand(), call.count)?;
    if line.me == 0 {
        script.copy(folder.layout(sum, call.count), output);
    }
    pass_on(&mut script, line, output, 0);
    // SAFETY: the caller's promise.
    unsafe { script.run() }
}

/// Reduce-scatter: folded at member 0, and scattered.
///
/// # Safety
/// As [`reduce_scatter`](crate::coll::reduce_scatter).
pub(in crate::coll) unsafe fn reduce_scatter(
    group: &Group<'_>,
    folder: &Folder<'_>,
    call: &Reduction<'_>,
    counts: &[i64],
) -> Result<(), EngineError> {
    let total: i64 = counts.iter().sum();
    let starts: Vec<i64> = counts
        .iter()
        .scan(0, |next, count| {
            Some(core::mem::replace(next, *next + count))
        })
        .collect();
    let mut script = Script::new(group, Some(*folder));
    let line = Line::all(group);
    let sum = fold_at_first(&mut script, line, folder, call.operand(), total as u64)?;
    let blocks = Blocks::Varying {
        base: sum,
        counts,
        displacements: &starts,
        datatype: call.datatype,
    };
    let mine = counts[group.me()] as u64;
    let output = folder.layout(call.output, mine);
    deal_out(&mut script, Some(blocks), Some(output), 0);
    // SAFETY: the caller's promise.
    unsafe { script.run() }
}

/// Scan and exscan: in step *k* a member learns the fold of the 2^*k* operands that end 2^*k* members before
/// its own.
///
/// # Safety
/// As [`scan`](crate::coll::scan).
pub(in crate::coll) unsafe fn scan(
    group: &Group<'_>,
    folder: &Folder<'_>,
    call: &Reduction<'_>,
    kind: Scan,
) -> Result<(), EngineError> {
    let mut script = Script::new(group, Some(*folder));
    let (me, size) = script.place();
    let count = call.count;
    let layout = |base: *mut u8| folder.layout(base, count);
    // The fold of the operands from some member up to this one, and what comes before it.
    let so_far = script.room(folder, count)?;
    let before = script.room(folder, count)?;
    script.copy(folder.layout(call.operand(), count), layout(so_far));
    if kind == Scan::Inclusive {
        script.copy(layout(so_far), layout(call.output));
    }
    let mut has_output = kind == Scan::Inclusive;
    let mut distance = 1;
    while distance < size {
        if me + distance < size {
            script.send(me + distance, layout(so_far));
        }
        if me >= distance {
            script.receive(me - distance, layout(before));
        }
        script.wait();
        if me >= distance {
            script.fold(before, so_far, count);
            if has_output {
                script.fold(before, call.output, count);
            } else {
                script.copy(layout(before), layout(call.output));
                has_output = true;
            }
        }
        distance *= 2;
    }
    // SAFETY: the caller's promise.
    unsafe { script.run() }
}
