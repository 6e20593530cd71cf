//! Scan and exscan: member *i* gets the fold of the operands up to its own.
//!
//! Small (an entry's worth, or a side buffer's): everybody posts its operand and folds those that it needs. Nobody
//! waits for a later member, so early ones run ahead. Where ranks outnumber CPUs, members also leave prefixes of a few
//! bytes for those behind them (`round/prefix.rs`).
//!
//! Prefixes grow from the first operand on, `(operand[0] op operand[1]) op …`, whatever the size.
//!
//! Large: members exchange addresses; each takes a share of the elements and computes all prefixes of it in one pass
//! over the operands. Those of a scan grow where they belong, one out of the other. As in reduce, a share is touched by
//! one member only, so in place needs no copy; in an exscan an operand is kept while a prefix takes its place.

use crate::args::parts::copy_small;
use crate::args::{Reduction, Scan};
use crate::blocking::choice::scan_copied_max;
use crate::blocking::operands::in_blocks;
use crate::blocking::round::{Finish, PREFIXED_MAX, Round};
use crate::fold::{Folder, Runner, share};
use crate::members::LocalGroup;
use crate::memory::Scratch;
use cohort_core::EngineError;
use cohort_datatype::copy;

/// `MPI_Scan` and `MPI_Exscan`.
///
/// # Errors
/// [`EngineError::Unsupported`] operation for the type, [`EngineError::Truncated`] at members that find that they
/// disagree about the size, or no memory.
#[inline(always)]
pub(super) fn scan(
    group: &LocalGroup<'_>,
    folder: &Folder<'_>,
    call: &Reduction<'_>,
    kind: Scan,
) -> Result<(), EngineError> {
    // SAFETY: operand and output have these elements; scratches have room for theirs.
    unsafe {
        if group.size() == 1 {
            if let (Some(operand), Scan::Inclusive) = (call.input(), kind) {
                copy(call.result(), operand, 0, u64::MAX);
            }
            return Ok(());
        }
        let operand = call.operand();
        if operand.bytes() > scan_copied_max(group, folder.calls_user()) {
            return scan_by_shares(group, folder, call, kind);
        }
        if group.is_crowded() && operand.bytes() <= PREFIXED_MAX {
            return scan_with_prefixes(group, folder, call, kind);
        }
        let round = Round::begin(group);
        round.post_data(&operand)?;
        round.announce_to_later();
        let result = match end(group, kind) {
            0 => Ok(()),
            end => {
                round.await_earlier();
                folder.prefix_of_entries(&round, end, call.count(), call.output())
            }
        };
        round.finish(Finish::Nobody);
        result
    }
}

/// The first member whose operand is not in the caller's result.
fn end(group: &LocalGroup<'_>, kind: Scan) -> usize {
    match kind {
        Scan::Inclusive => group.me() + 1,
        Scan::Exclusive => group.me(),
    }
}

/// [`scan`] of at most [`PREFIXED_MAX`] bytes where ranks outnumber CPUs.
///
/// # Safety
/// Operand and output have the call's elements.
#[inline(never)]
unsafe fn scan_with_prefixes(
    group: &LocalGroup<'_>,
    folder: &Folder<'_>,
    call: &Reduction<'_>,
    kind: Scan,
) -> Result<(), EngineError> {
    let (me, count, output) = (group.me(), call.count(), call.output());
    let bytes = call.operand().bytes() as usize;
    let kernel = folder.kernel().filter(|_| folder.datatype().is_dense());
    let round = Round::begin(group);
    round.post_operand(&call.operand());
    round.announce_to_sleepers();
    let left = if me == 0 { None } else { round.await_left(bytes) };
    let end = end(group, kind);
    // SAFETY: the caller's promise; earlier members have posted.
    let result = unsafe {
        match kernel.zip(left) {
            _ if end == 0 => Ok(()),
            Some((kernel, left)) => folder.prefix_of_left(&round, (left, end), (kernel, count as usize), output),
            None => folder.prefix_of_entries(&round, end, count, output),
        }
    };
    if me + 1 < group.size() {
        let kernel = kernel.filter(|_| result.is_ok());
        round.leave_prefix(
            bytes,
            kernel.map(|kernel| {
                move |operand: *const u8, prefix: *mut u8| {
                    let is_in_output = kind == Scan::Inclusive;
                    // SAFETY: all three have `count` elements, and the prefix lies apart from the others.
                    unsafe {
                        copy_small(if is_in_output { output } else { operand }, prefix, bytes);
                        if !is_in_output && me > 0 {
                            kernel(output, prefix, count as usize);
                        }
                    }
                }
            }),
        );
    }
    round.finish(Finish::Nobody);
    result
}

/// Each member computes all prefixes of its share of the elements.
fn scan_by_shares(
    group: &LocalGroup<'_>,
    folder: &Folder<'_>,
    call: &Reduction<'_>,
    kind: Scan,
) -> Result<(), EngineError> {
    let block = match kind {
        Scan::Inclusive => 0,
        Scan::Exclusive => folder.block(),
    };
    let rooms = [Scratch::new(folder, block)?, Scratch::new(folder, block)?];
    let range = share(call.count(), group.me(), group.size());
    in_blocks(group, folder, (call, call.output()), range, |all, block| {
        let count = block.end - block.start;
        let places = all.iter().map(|it| (folder.at(it.operand, block.start), folder.at(it.output, block.start)));
        // SAFETY: every member's buffers hold `count` elements until all have completed, and this block of them is
        // touched by this member only; there is room for a block.
        unsafe {
            match kind {
                Scan::Inclusive => inclusive(folder, places, count),
                Scan::Exclusive => exclusive(folder, places, count, rooms.each_ref().map(|room| room.base)),
            }
        }
    })
}

/// Each member's prefix grows in its own output, from the one before it.
///
/// # Safety
/// Operands and outputs, in rank order, hold `count` elements, and nobody else touches them.
unsafe fn inclusive(folder: &Folder<'_>, places: impl Iterator<Item = (*mut u8, *mut u8)>, count: u64) {
    let mut prefix = None;
    for (operand, output) in places {
        // SAFETY: the caller's promise.
        unsafe {
            folder.copy_elsewhere(operand, output, count);
            if let Some(prefix) = prefix {
                folder.combine(prefix, output, count, Runner::Owner);
            }
        }
        prefix = Some(output);
    }
}

/// An operand that is where the prefix of those before it goes is kept in one of two rooms meanwhile. The last one is
/// in no prefix.
///
/// # Safety
/// As for [`inclusive`]; the rooms hold `count` elements each.
unsafe fn exclusive(
    folder: &Folder<'_>,
    places: impl ExactSizeIterator<Item = (*mut u8, *mut u8)>,
    count: u64,
    [mut next, mut other]: [*mut u8; 2],
) {
    let last = places.len() - 1;
    let mut prefix = None;
    for (member, (operand, output)) in places.enumerate() {
        let Some(before) = prefix else {
            prefix = Some(operand);
            continue;
        };
        // SAFETY: the caller's promise.
        unsafe {
            if member < last {
                folder.copy(operand, next, count);
            }
            folder.copy(before, output, count);
            if member < last {
                folder.combine(before, next, count, Runner::Owner);
            }
        }
        prefix = Some(next);
        core::mem::swap(&mut next, &mut other);
    }
}
