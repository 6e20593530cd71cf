//! Reduce, allreduce and reduce-scatter.
//!
//! Small (an entry's worth, or, where it saves a meeting, a parcel's): everybody posts its operand; whoever needs the result folds them, in rank order.
//!
//! Large: members exchange addresses; each folds its share of the elements straight from all
//! operands, block by block in the first-level cache, and writes the result straight to
//! everyone who needs it. Element *i* of any operand is read only by the member that
//! writes element *i* of the results, so in-place needs no copies.

use super::choice::{meets_once, scheduled};
use super::fold::{Folder, Reduction, Scratch, exchange_addresses, share};
use super::round::{Finish, Round};
use super::shared::{INLINE, LEAVES};
use super::wide;
use super::{Call, Group};
use crate::EngineError;
use core::ops::Range;

/// Bytes of all operands that the root of a reduce folds alone.
const FOLD_ALONE_MAX: usize = 64 << 10;

/// Bytes of all operands of an allreduce that every member folds.
const ALL_FOLD_MAX: usize = 16 << 10;

/// `MPI_Allreduce`.
///
/// # Safety
/// The buffers are live and hold `count` elements.
///
/// # Errors
/// [`EngineError::Unsupported`] operation for the type, [`EngineError::Truncated`] at members that find that they disagree
/// about the size, or no memory.
pub unsafe fn allreduce(group: &Group<'_>, call: &Reduction<'_>) -> Result<(), EngineError> {
    let folder = Folder::new(call.op, call.datatype)?;
    // SAFETY: the caller's conditions.
    unsafe {
        if group.size() == 1 {
            copy_alone(&folder, call);
            return Ok(());
        }
        if let Some(spread) = group.shared.spread() {
            return wide::allreduce(group, spread, &folder, call);
        }
        let description = Call::Allreduce { reduction: *call };
        let by_itself = || meets_once(group, folder.bytes(call.count), 2 * group.size());
        if let Some(done) = scheduled(group, |it| it.allreduce, by_itself, &description) {
            return done;
        }
        let operand = folder.layout(call.operand(), call.count);
        if operand.bytes() > everyone_folds_max(group, &folder) {
            let scratch = Scratch::new(&folder, folder.block())?;
            return reduce_by_shares(group, &folder, call, &scratch, call.output, None);
        }
        let round = Round::begin(group);
        round.leave_data(&operand)?;
        round.exchange();
        let result = folder.fold_entries(&round, 0..group.size(), 0..call.count, call.output);
        round.finish(Finish::Nobody);
        result
    }
}

/// `MPI_Reduce` to member `root`; `output` is used at the root only.
///
/// # Safety
/// The buffers are live and hold `count` elements.
///
/// # Errors
/// [`EngineError::Unsupported`] operation for the type, [`EngineError::Truncated`] at members that find that they disagree
/// about the size, or no memory.
pub unsafe fn reduce(
    group: &Group<'_>,
    call: &Reduction<'_>,
    root: u32,
) -> Result<(), EngineError> {
    let folder = Folder::new(call.op, call.datatype)?;
    let is_root = group.me == root;
    // SAFETY: the caller's conditions.
    unsafe {
        if group.size() == 1 {
            copy_alone(&folder, call);
            return Ok(());
        }
        if let Some(spread) = group.shared.spread() {
            return wide::reduce(group, spread, &folder, call, root as usize);
        }
        let description = Call::Reduce {
            reduction: *call,
            root,
        };
        if let Some(done) = scheduled(group, |it| it.reduce, || None, &description) {
            return done;
        }
        let operand = folder.layout(call.operand(), call.count);
        if operand.bytes() > leaves_max(group) {
            let scratch = Scratch::new(&folder, folder.block())?;
            let output = if is_root {
                call.output
            } else {
                core::ptr::null_mut()
            };
            return reduce_by_shares(group, &folder, call, &scratch, output, Some(root));
        }
        let round = Round::begin(group);
        round.leave_data(&operand)?;
        let result = if is_root {
            round.await_all();
            folder.fold_entries(&round, 0..group.size(), 0..call.count, call.output)
        } else {
            round.announce_to(root as usize);
            Ok(())
        };
        round.finish(Finish::Nobody);
        result
    }
}

/// Longest operand that members leave to the root to fold. Its fold takes as long as a meeting then; where ranks outnumber CPUs, all that
/// members leave, since a meeting takes so much longer.
fn leaves_max(group: &Group<'_>) -> u64 {
    let max = match group.rank.node().is_crowded() {
        true => LEAVES,
        false => (FOLD_ALONE_MAX / group.size()).clamp(INLINE, LEAVES),
    };
    max as u64
}

/// Longest operand of an allreduce that every member folds all of, which saves a meeting. Users' operations are called for
/// each element once, beyond an entry's worth.
fn everyone_folds_max(group: &Group<'_>, folder: &Folder<'_>) -> u64 {
    let max = match group.rank.node().is_crowded() || folder.calls_user() {
        true => INLINE,
        false => (ALL_FOLD_MAX / group.size()).clamp(INLINE, LEAVES),
    };
    max as u64
}

/// # Safety
/// As [`allreduce`].
unsafe fn copy_alone(folder: &Folder<'_>, call: &Reduction<'_>) {
    if let Some(input) = call.input {
        // SAFETY: the caller's buffers.
        unsafe { folder.copy(input, call.output, call.count) };
    }
}

/// The large algorithm, for a result at `root` or everywhere.
///
/// # Safety
/// As [`allreduce`]; the scratch holds a block.
unsafe fn reduce_by_shares(
    group: &Group<'_>,
    folder: &Folder<'_>,
    call: &Reduction<'_>,
    scratch: &Scratch,
    output: *mut u8,
    root: Option<u32>,
) -> Result<(), EngineError> {
    let own = folder.addresses(call.operand(), output, call.count);
    let (round, all) = exchange_addresses(group, &own)?;
    let receivers = match root {
        Some(root) => &all[root as usize..=root as usize],
        None => &all[..],
    };
    for block in folder.blocks(share(call.count, group.me(), group.size())) {
        let count = block.end - block.start;
        // SAFETY: every member's buffers hold `count` elements until all have completed, and
        // this block of them is touched by this member only.
        unsafe {
            folder.fold_memory(&all, &block, scratch.base);
            for receiver in receivers {
                folder.copy(scratch.base, folder.at(receiver.output, block.start), count);
            }
        }
    }
    round.finish(Finish::Everyone);
    Ok(())
}

/// `MPI_Reduce_scatter` (and `_block`): member *i* gets `counts[i]` elements of the result.
/// `call.count` is ignored.
///
/// # Safety
/// The operand holds the sum of `counts`, the output this member's count of elements (in
/// place: the sum).
///
/// # Errors
/// [`EngineError::Unsupported`] operation for the type, [`EngineError::Truncated`] at members that find that they disagree
/// about the size, or no memory.
pub unsafe fn reduce_scatter(
    group: &Group<'_>,
    call: &Reduction<'_>,
    counts: &[i64],
) -> Result<(), EngineError> {
    let folder = Folder::new(call.op, call.datatype)?;
    let start: i64 = counts[..group.me()].iter().sum();
    let range = start as u64..(start + counts[group.me()]) as u64;
    let total = counts.iter().sum::<i64>() as u64;
    // SAFETY: the caller's conditions.
    unsafe {
        if group.size() == 1 {
            copy_alone(
                &folder,
                &Reduction {
                    count: total,
                    ..*call
                },
            );
            return Ok(());
        }
        let reduction = Reduction {
            count: total,
            ..*call
        };
        if let Some(spread) = group.shared.spread() {
            return wide::reduce_scatter(group, spread, &folder, &reduction, counts);
        }
        let description = Call::ReduceScatter { reduction, counts };
        let by_itself = || meets_once(group, folder.bytes(total), group.size());
        if let Some(done) = scheduled(group, |it| it.reduce_scatter, by_itself, &description) {
            return done;
        }
        if !folder.is_small(total) {
            return scatter_large(group, &folder, &reduction, range);
        }
        let round = Round::begin(group);
        round.post_layout(&folder.layout(call.operand(), total));
        round.exchange();
        let result = folder.fold_entries(&round, 0..group.size(), range, call.output);
        round.finish(Finish::Nobody);
        result
    }
}

/// # Safety
/// As [`reduce_scatter`], for this member's `range`.
unsafe fn scatter_large(
    group: &Group<'_>,
    folder: &Folder<'_>,
    call: &Reduction<'_>,
    range: Range<u64>,
) -> Result<(), EngineError> {
    let in_place = call.input.is_none();
    let count = range.end - range.start;
    // In place the output is an operand that others still read: fold elsewhere.
    let scratch = Scratch::new(folder, if in_place { count } else { folder.block() })?;
    let own = folder.addresses(call.operand(), call.output, call.count);
    let (round, all) = exchange_addresses(group, &own)?;
    for block in folder.blocks(range.clone()) {
        let at = block.start - range.start;
        // SAFETY: every member's operand holds the range until all have completed.
        unsafe {
            if in_place {
                folder.fold_memory(&all, &block, folder.at(scratch.base, at));
            } else {
                folder.fold_memory(&all, &block, scratch.base);
                folder.copy(
                    scratch.base,
                    folder.at(call.output, at),
                    block.end - block.start,
                );
            }
        }
    }
    round.finish(Finish::Everyone);
    if in_place {
        // SAFETY: nobody reads the operand any more.
        unsafe { folder.copy(scratch.base, call.output, count) };
    }
    Ok(())
}
