//! Reduce, allreduce and reduce-scatter.
//!
//! Small (an entry's worth, or, where it saves a meeting, a side buffer's): everybody posts its operand; whoever needs
//! the result folds them, in rank order.
//!
//! Large: members exchange addresses; each folds its share of the elements straight from all
//! operands, block by block in the first-level cache, and writes the result straight to
//! everyone who needs it. Element *i* of any operand is read only by the member that
//! writes element *i* of the results, so in-place needs no copies.

use crate::args::{Reduction, elements_of};
use crate::blocking::operands::in_blocks;
use crate::blocking::round::{Finish, Round};
use crate::fold::{Folder, share};
use crate::members::{COPY_MAX, INLINE, LocalGroup};
use crate::memory::Scratch;
use cohort_core::EngineError;
use cohort_datatype::copy;
use core::ops::Range;

/// Bytes of all operands that the root of a reduce folds alone.
const FOLD_ALONE_MAX: usize = 64 << 10;

/// Bytes of all operands of an allreduce that every member folds.
const ALL_FOLD_MAX: usize = 16 << 10;

/// `MPI_Allreduce`.
///
/// # Errors
/// [`EngineError::Unsupported`] operation for the type, [`EngineError::Truncated`] at members that find that they
/// disagree about the size, or no memory.
#[inline(always)]
pub(super) fn allreduce(group: &LocalGroup<'_>, folder: &Folder<'_>, call: &Reduction<'_>) -> Result<(), EngineError> {
    // SAFETY: operand and output have these elements; scratches have room for theirs.
    unsafe {
        if group.size() == 1 {
            copy_alone(call);
            return Ok(());
        }
        let operand = call.operand();
        if operand.bytes() > everyone_folds_max(group, folder) {
            let scratch = Scratch::new(folder, folder.block())?;
            return reduce_by_shares(group, folder, call, &scratch, call.output(), None);
        }
        let round = Round::begin(group);
        round.post_data(&operand)?;
        round.exchange();
        let result = folder.fold_entries(&round, 0..group.size(), 0..call.count(), call.output());
        round.finish(Finish::Nobody);
        result
    }
}

/// `MPI_Reduce` to member `root`; `output` is used at the root only.
///
/// # Errors
/// [`EngineError::Unsupported`] operation for the type, [`EngineError::Truncated`] at members that find that they
/// disagree about the size, or no memory.
#[inline(always)]
pub(super) fn reduce(
    group: &LocalGroup<'_>,
    folder: &Folder<'_>,
    call: &Reduction<'_>,
    root: u32,
) -> Result<(), EngineError> {
    let is_root = group.me == root;
    // SAFETY: operand and output have these elements; scratches have room for theirs.
    unsafe {
        if group.size() == 1 {
            copy_alone(call);
            return Ok(());
        }
        let operand = call.operand();
        if operand.bytes() > copied_max(group) {
            let scratch = Scratch::new(folder, folder.block())?;
            let output = if is_root { call.output() } else { core::ptr::null_mut() };
            return reduce_by_shares(group, folder, call, &scratch, output, Some(root));
        }
        let round = Round::begin(group);
        round.post_data(&operand)?;
        let result = if is_root {
            round.await_all();
            folder.fold_entries(&round, 0..group.size(), 0..call.count(), call.output())
        } else {
            round.announce_to(root as usize);
            Ok(())
        };
        round.finish(Finish::Nobody);
        result
    }
}

/// Longest operand that members leave to the root to fold. Its fold takes as long as a meeting then; where ranks
/// outnumber CPUs, all that members leave, since a meeting takes so much longer.
fn copied_max(group: &LocalGroup<'_>) -> u64 {
    let max = match group.is_crowded() {
        true => COPY_MAX,
        false => (FOLD_ALONE_MAX / group.size()).clamp(INLINE, COPY_MAX),
    };
    max as u64
}

/// Longest operand of an allreduce that every member folds all of, which saves a meeting. Users' operations are called
/// for each element once, beyond an entry's worth.
pub(super) fn everyone_folds_max(group: &LocalGroup<'_>, folder: &Folder<'_>) -> u64 {
    shared_folds_max(group, folder).min((ALL_FOLD_MAX / group.size()).max(INLINE) as u64)
}

/// The same of a reduce-scatter, in which each folds its share of what all have copied.
fn shared_folds_max(group: &LocalGroup<'_>, folder: &Folder<'_>) -> u64 {
    let max = match group.is_crowded() || folder.calls_user() {
        true => INLINE,
        false => COPY_MAX,
    };
    max as u64
}

fn copy_alone(call: &Reduction<'_>) {
    if let Some(operand) = call.input() {
        copy(call.result(), operand, 0, u64::MAX);
    }
}

/// The large algorithm, for a result at `root` or everywhere.
///
/// # Safety
/// The scratch holds a block, and `output` has room for the result.
unsafe fn reduce_by_shares(
    group: &LocalGroup<'_>,
    folder: &Folder<'_>,
    call: &Reduction<'_>,
    scratch: &Scratch,
    output: *mut u8,
    root: Option<u32>,
) -> Result<(), EngineError> {
    let range = share(call.count(), group.me(), group.size());
    in_blocks(group, folder, (call, output), range, |all, block| {
        let count = block.end - block.start;
        let receivers = match root {
            Some(root) => &all[root as usize..=root as usize],
            None => all,
        };
        // SAFETY: every member's buffers hold `count` elements until all have completed, and
        // this block of them is touched by this member only.
        unsafe {
            folder.fold_memory(all, &block, scratch.base);
            for receiver in receivers {
                folder.copy(scratch.base, folder.at(receiver.output, block.start), count);
            }
        }
    })
}

/// `MPI_Reduce_scatter` (and `_block`): member *i* gets `counts[i]` elements of the result.
/// `call.count` is their sum.
///
/// # Errors
/// [`EngineError::Unsupported`] operation for the type, [`EngineError::Truncated`] at members that find that they
/// disagree about the size, or no memory.
#[inline(always)]
pub(super) fn reduce_scatter(
    group: &LocalGroup<'_>,
    folder: &Folder<'_>,
    call: &Reduction<'_>,
    counts: &[i64],
) -> Result<(), EngineError> {
    let range = elements_of(counts, group.me()..group.me() + 1);
    // SAFETY: operand and output have these elements; scratches have room for theirs.
    unsafe {
        if group.size() == 1 {
            copy_alone(call);
            return Ok(());
        }
        let operand = call.operand();
        if operand.bytes() > shared_folds_max(group, folder) {
            return scatter_large(group, folder, call, range);
        }
        let round = Round::begin(group);
        round.post_data(&operand)?;
        round.exchange();
        let result = folder.fold_entries(&round, 0..group.size(), range, call.output());
        round.finish(Finish::Nobody);
        result
    }
}

fn scatter_large(
    group: &LocalGroup<'_>,
    folder: &Folder<'_>,
    call: &Reduction<'_>,
    range: Range<u64>,
) -> Result<(), EngineError> {
    let in_place = call.input.is_none();
    let count = range.end - range.start;
    // In place the output is an operand that others still read: fold elsewhere.
    let scratch = Scratch::new(folder, if in_place { count } else { folder.block() })?;
    let first = range.start;
    in_blocks(group, folder, (call, call.output()), range, |all, block| {
        let at = block.start - first;
        let length = block.end - block.start;
        // SAFETY: every member's operand holds the range until all have completed.
        unsafe {
            if in_place {
                folder.fold_memory(all, &block, folder.at(scratch.base, at));
            } else {
                folder.fold_memory(all, &block, scratch.base);
                folder.copy(scratch.base, folder.at(call.output(), at), length);
            }
        }
    })?;
    if in_place {
        // SAFETY: nobody reads the operand any more.
        unsafe { folder.copy(scratch.base, call.output(), count) };
    }
    Ok(())
}
