//! Collectives that fold operands, always in rank order.
//!
//! Unless the setting `COHORT_REDUCE_ORDER` says `ranks`, neighbours are folded first along trees: the same
//! operands in the same order, but in a grouping that depends on placement. With `ranks` the grouping is that of a node, as
//! it is where each member folds a share.
//!
//! In a line of up to [`ANY_LENGTH`] members their number alone tells how many messages travel between any two of them, not
//! the length of operands: members that disagree about it, in a wrong program, get through, and find operands of another length than
//! their own. Longer lines have so many messages to save that their operands' length decides.

use super::moving::pass_on;
use super::script::Line;
use super::spread::Homes;
use super::{Group, Script};
use crate::EngineError;
use crate::coll::fold::{Folder, reserve, share};
use crate::coll::{Reduction, Scan};
use alloc::vec::Vec;
use cohort_base::settings::ReduceOrder;
use core::ops::Range;
use core::ptr::null;

/// The least bytes of a part of an operand that is worth messages of its own.
const SHARE_LEAST: u64 = 8 << 10;

/// The longest line whose members do the same whatever the length of their operands.
const ANY_LENGTH: usize = 64;

/// The longest line in which a reduce folds along a tree whatever the operands' length.
const TREE_MOST: usize = 8;

/// Bytes of all operands of a line whose members each fold all of them.
const EVERYWHERE_MOST: u64 = 32 << 10;

/// Bytes of operands that a member which folds them one after the other receives at a time; at least one.
const WINDOW: u64 = 1 << 20;

fn is_grouped_by_rank(script: &Script<'_>) -> bool {
    script.rank.node().settings().reduce_order == ReduceOrder::Ranks
}

/// Steps that fold everybody's operands at the first of a line. Returns where the result is there; elsewhere that
/// memory is of no use.
fn fold_at_first<'a>(
    script: &mut Script<'a>,
    line: Line<'_>,
    folder: &Folder<'a>,
    operand: *const u8,
    count: u64,
) -> Result<*mut u8, EngineError> {
    match is_grouped_by_rank(script) {
        true => fold_one_by_one(script, line, folder, operand, count),
        false => fold_along_tree(script, line, folder, operand, count),
    }
}

/// [`fold_at_first`] as within a node: `operand[0] op (operand[1] op (…))`.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub(super) fn fold_one_by_one<'a>(
    script: &mut Script<'a>,
    line: Line<'_>,
    folder: &Folder<'a>,
    operand: *const u8,
    count: u64,
) -> Result<*mut u8, EngineError> {
    let own = folder.layout(operand, count);
    let sum = script.room(folder, count)?;
    if line.me != 0 {
        script.send(line.at(0), own);
        script.wait();
        return Ok(sum);
    }
    let last = line.size - 1;
    if last == 0 {
        script.copy(own, folder.layout(sum, count));
        return Ok(sum);
    }
    script.receive_operand(line.at(last), folder.layout(sum, count));
    let window = (WINDOW / own.bytes().max(1)).clamp(1, line.size as u64) as usize;
    let mut rooms = Vec::new();
    for _ in 0..window.min(last - 1) {
        rooms.push(script.room(folder, count)?);
    }
    let mut missing = last;
    while missing > 1 {
        let places = missing.saturating_sub(window).max(1)..missing;
        missing = places.start;
        for (place, &room) in places.clone().rev().zip(&rooms) {
            script.receive_operand(line.at(place), folder.layout(room, count));
        }
        script.wait();
        for (_, &room) in places.zip(&rooms) {
            script.fold(room, sum, count);
        }
    }
    script.wait();
    script.fold(operand, sum, count);
    Ok(sum)
}

/// [`fold_at_first`] along a binomial tree of neighbours.
fn fold_along_tree<'a>(
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
            script.receive_operand(line.at(me + distance), folder.layout(theirs, count));
            script.wait();
            script.fold(sum, theirs, count);
            other = Some(sum);
            sum = theirs;
        }
        distance *= 2;
    }
    Ok(sum)
}

/// Steps of a reduce among a line: folded at its first member, and sent on to the one at place `root`.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub(super) fn reduce<'a>(
    script: &mut Script<'a>,
    line: Line<'_>,
    folder: &Folder<'a>,
    call: &Reduction<'a>,
    root: usize,
) -> Result<(), EngineError> {
    let count = call.count;
    if line.size > TREE_MOST && folds_in_shares(line, folder, count) {
        return reduce_in_shares(script, line, folder, call, Some(root));
    }
    let sum = fold_at_first(script, line, folder, call.operand(), count)?;
    let (sum, output) = (folder.layout(sum, count), folder.layout(call.output, count));
    match (line.me, root) {
        (0, 0) => script.copy(sum, output),
        (0, _) => script.send(line.at(root), sum),
        (me, _) if me == root => script.receive_operand(line.at(0), output),
        _ => {}
    }
    Ok(())
}

/// Steps of an allreduce among a line: each member folds a share, or, of short operands, all; in a very long line the first one
/// folds those and broadcasts the result.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub(super) fn allreduce<'a>(
    script: &mut Script<'a>,
    line: Line<'_>,
    folder: &Folder<'a>,
    call: &Reduction<'a>,
) -> Result<(), EngineError> {
    if line.size > 1 && line.size <= ANY_LENGTH && is_short(line, folder, call.count) {
        return fold_everywhere(script, line, folder, call);
    }
    if folds_in_shares(line, folder, call.count) {
        return reduce_in_shares(script, line, folder, call, None);
    }
    let output = folder.layout(call.output, call.count);
    let sum = fold_at_first(script, line, folder, call.operand(), call.count)?;
    if line.me == 0 {
        script.copy(folder.layout(sum, call.count), output);
    }
    pass_on(script, line, output, 0)
}

/// Whether the operands of all are together so short that each member better gets them all than a share.
fn is_short(line: Line<'_>, folder: &Folder<'_>, count: u64) -> bool {
    folder.layout(null(), count).bytes() * line.size as u64 <= EVERYWHERE_MOST
}

/// Steps of an allreduce of short operands, all of which each member folds. It sends each other one as many messages as
/// [`reduce_in_shares`] does, of which one is empty: members that disagree about the length notice.
fn fold_everywhere<'a>(
    script: &mut Script<'a>,
    line: Line<'_>,
    folder: &Folder<'a>,
    call: &Reduction<'a>,
) -> Result<(), EngineError> {
    let nothing = folder.layout(null(), 0);
    for place in (0..line.size).filter(|&place| place != line.me) {
        script.receive(line.at(place), nothing);
        script.send(line.at(place), nothing);
    }
    let count = call.count;
    let sum = fold_share(script, line, folder, call.operand(), |_| 0..count)?;
    script.copy(folder.layout(sum, count), folder.layout(call.output, count));
    Ok(())
}

/// Whether each member of a line folds a part of the operands: always, but where there are so many that short operands
/// are better sent on from member to member.
fn folds_in_shares(line: Line<'_>, folder: &Folder<'_>, count: u64) -> bool {
    let bytes = folder.layout(null(), count).bytes();
    line.size > 1 && (line.size <= ANY_LENGTH || bytes >= SHARE_LEAST * line.size as u64)
}

/// Steps that fold the caller's share of everybody's operands, in rank order. `shares` are the elements of each place
/// of the line. Returns where the result is; the operands are free afterwards.
fn fold_share<'a>(
    script: &mut Script<'a>,
    line: Line<'_>,
    folder: &Folder<'a>,
    operand: *const u8,
    shares: impl Fn(usize) -> Range<u64>,
) -> Result<*mut u8, EngineError> {
    let Line { me, size, .. } = line;
    let length = |share: &Range<u64>| share.end - share.start;
    let mine = shares(me);
    let (own, count) = (folder.at(operand, mine.start), length(&mine));
    let mut operands = reserve(size)?;
    for place in 0..size {
        if place == me && me + 1 < size {
            operands.push(own);
            continue;
        }
        let room = script.room(folder, count)?;
        operands.push(room);
        match place == me {
            true => script.copy(folder.layout(own, count), folder.layout(room, count)),
            false => script.receive_operand(line.at(place), folder.layout(room, count)),
        }
    }
    for distance in 1..size {
        let place = (me + distance) % size;
        let theirs = shares(place);
        let part = folder.layout(folder.at(operand, theirs.start), length(&theirs));
        script.send(line.at(place), part);
    }
    script.wait();
    let sum = operands[size - 1];
    for &operand in operands[..size - 1].iter().rev() {
        script.fold(operand, sum, count);
    }
    Ok(sum)
}

/// Steps of a reduce of long operands: each member folds a share, and sends it to the one at place `root`, or to all.
fn reduce_in_shares<'a>(
    script: &mut Script<'a>,
    line: Line<'_>,
    folder: &Folder<'a>,
    call: &Reduction<'a>,
    root: Option<usize>,
) -> Result<(), EngineError> {
    let Line { me, size, .. } = line;
    let shares = |place| share(call.count, place, size);
    let sum = fold_share(script, line, folder, call.operand(), shares)?;
    let result = |place| {
        let Range { start, end } = shares(place);
        folder.layout(folder.at(call.output, start), end - start)
    };
    let mine = shares(me);
    let sum = folder.layout(sum, mine.end - mine.start);
    let others = || (1..size).map(|distance| (me + distance) % size);
    if root.is_none_or(|root| root == me) {
        script.copy(sum, result(me));
        others().for_each(|place| script.receive_operand(line.at(place), result(place)));
    }
    for place in others().filter(|&place| root.is_none_or(|root| root == place)) {
        script.send(line.at(place), sum);
    }
    script.wait();
    Ok(())
}

/// The elements of the result of a reduce-scatter that consecutive members get.
pub(super) fn elements_of(counts: &[i64], members: Range<usize>) -> Range<u64> {
    let start: i64 = counts[..members.start].iter().sum();
    let length: i64 = counts[members].iter().sum();
    start as u64..(start + length) as u64
}

/// Steps of a reduce-scatter among all members.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub(super) fn reduce_scatter<'a>(
    script: &mut Script<'a>,
    folder: &Folder<'a>,
    call: &Reduction<'a>,
    counts: &[i64],
) -> Result<(), EngineError> {
    let line = script.everyone();
    let count = counts[line.me] as u64;
    let total = elements_of(counts, 0..line.size).end;
    let shares = |place| elements_of(counts, place..place + 1);
    let result = fold_and_deal_out(script, line, folder, (call.operand(), total), shares)?;
    script.copy(
        folder.layout(result, count),
        folder.layout(call.output, count),
    );
    Ok(())
}

/// Steps of a reduce-scatter among leaders. The operand of `call` is what those of the caller's node are folded to; the results of
/// that node's members come to its output, where a whole result would have them.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub(super) fn reduce_scatter_of_nodes<'a>(
    script: &mut Script<'a>,
    (homes, line): (&Homes, Line<'_>),
    folder: &Folder<'a>,
    call: &Reduction<'a>,
    counts: &[i64],
) -> Result<(), EngineError> {
    if !homes.is_in_order() {
        allreduce(script, line, folder, call)?;
        script.wait();
        return Ok(());
    }
    let shares = |node| {
        let members = homes.members(node);
        let first = members[0] as usize;
        elements_of(counts, first..first + members.len())
    };
    let Range { start, end } = shares(line.me);
    let result = fold_and_deal_out(script, line, folder, (call.operand(), call.count), shares)?;
    let mine = folder.at(call.output, start);
    script.copy(
        folder.layout(result, end - start),
        folder.layout(mine, end - start),
    );
    Ok(())
}

/// Steps that fold operands at those that get the result, the elements `shares` of each place; short ones of very many at the
/// first of the line, which deals the result out. Returns where the caller's part is.
fn fold_and_deal_out<'a>(
    script: &mut Script<'a>,
    line: Line<'_>,
    folder: &Folder<'a>,
    (operand, count): (*const u8, u64),
    shares: impl Fn(usize) -> Range<u64>,
) -> Result<*mut u8, EngineError> {
    if folds_in_shares(line, folder, count) {
        return fold_share(script, line, folder, operand, shares);
    }
    let sum = fold_at_first(script, line, folder, operand, count)?;
    let Range { start, end } = shares(line.me);
    if line.me != 0 {
        let room = script.room(folder, end - start)?;
        script.receive_operand(line.at(0), folder.layout(room, end - start));
        script.wait();
        return Ok(room);
    }
    for place in 1..line.size {
        let Range { start, end } = shares(place);
        let part = folder.layout(folder.at(sum, start), end - start);
        script.send(line.at(place), part);
    }
    Ok(folder.at(sum, start))
}

/// Scan and exscan.
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
    prefixes(&mut script, folder, call, kind)?;
    // SAFETY: the caller's promise.
    unsafe { script.run() }
}

/// Steps of a scan.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub(super) fn prefixes<'a>(
    script: &mut Script<'a>,
    folder: &Folder<'a>,
    call: &Reduction<'a>,
    kind: Scan,
) -> Result<(), EngineError> {
    match is_grouped_by_rank(script) {
        true => prefixes_one_by_one(script, folder, call, kind),
        false => prefixes_by_doubling(script, folder, call, kind),
    }
}

/// [`prefixes`] as within a node, `((operand[0] op operand[1]) op …)`: each member continues what the one before
/// it has.
fn prefixes_one_by_one<'a>(
    script: &mut Script<'a>,
    folder: &Folder<'a>,
    call: &Reduction<'a>,
    kind: Scan,
) -> Result<(), EngineError> {
    let (me, size) = script.place();
    let layout = |base: *mut u8| folder.layout(base, call.count);
    let (so_far, before) = (
        script.room(folder, call.count)?,
        script.room(folder, call.count)?,
    );
    script.copy(folder.layout(call.operand(), call.count), layout(so_far));
    if me > 0 {
        script.receive_operand(me - 1, layout(before));
        script.wait();
        script.fold(before, so_far, call.count);
    }
    if me + 1 < size {
        script.send(me + 1, layout(so_far));
    }
    match kind {
        Scan::Inclusive => script.copy(layout(so_far), layout(call.output)),
        Scan::Exclusive if me > 0 => script.copy(layout(before), layout(call.output)),
        Scan::Exclusive => {}
    }
    Ok(())
}

/// [`prefixes`] in few steps: in step *k* a member learns the fold of the 2^*k* operands that end 2^*k* members before
/// its own.
fn prefixes_by_doubling<'a>(
    script: &mut Script<'a>,
    folder: &Folder<'a>,
    call: &Reduction<'a>,
    kind: Scan,
) -> Result<(), EngineError> {
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
            script.receive_operand(me - distance, layout(before));
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
    Ok(())
}
