//! Collectives that fold operands, always in rank order.
//!
//! Unless the setting `COHORT_REDUCE_ORDER` says `ranks`, neighbours are folded first along trees: the same operands in
//! the same order, but in a grouping that depends on placement. With `ranks` the grouping is that of a node, as it is
//! where each member folds a share.
//!
//! In a group of up to [`ANY_BYTES_MOST`] members their number alone tells how many messages travel between any two of
//! them, not the length of operands: members that disagree about it, in a wrong program, get through, and find operands
//! of another length than their own. (Of very short operands members send a second message only when they have found
//! that.) Larger groups have so many messages to save that their operands' length decides.

use super::builder::{ScheduleBuilder, Subgroup};
use super::moving::broadcast;
use crate::args::Reduction;
use crate::fold::{Folder, share};
use crate::members::NodeMap;
use crate::memory::reserve;
use alloc::vec::Vec;
use cohort_base::settings::ReduceOrder;
use cohort_core::EngineError;
use cohort_core::rank::Rank;
use cohort_datatype::op::Op;
use cohort_datatype::{Basic, Buffer, Type};
use core::ops::Range;

/// The least bytes of a part of an operand that is worth messages of its own.
const SHARE_LEAST: u64 = 8 << 10;

/// The longest group whose members do the same whatever the length of their operands.
const ANY_BYTES_MOST: usize = 64;

/// The longest group in which a reduce folds along a tree whatever the operands' length.
const TREE_MOST: usize = 8;

/// Bytes of all operands of a group whose members each fold all of them.
const EVERYWHERE_MOST: u64 = 32 << 10;

/// Bytes of an operand, times the square of the members, that are folded by doubling. Longer operands go to all members
/// as long as no share would be longer than what is doubled.
const DOUBLED_MOST: u64 = 128 << 10;

/// What all members' lengths are marked by, where it does not matter whose is another ([`Told::Unlike`]).
const ALL: u8 = 0;

/// Bytes of operands that a member which folds them one after the other receives at a time; at least one.
const WINDOW: u64 = 1 << 20;

/// Whether each node may fold its operands first: the grouping does not matter, and the order of operands does not
/// or is kept.
pub(crate) fn folds_by_node(rank: &Rank, call: &Reduction<'_>, map: &NodeMap) -> bool {
    !is_grouped_by_rank(rank, call.op, call.datatype()) && (call.op.commutative() || map.is_in_order())
}

/// Whether the setting wants operands grouped by rank. It makes no difference to predefined operations on integers.
pub(super) fn is_grouped_by_rank(rank: &Rank, op: Op<'_>, datatype: &Type) -> bool {
    let is_exact = || datatype.element().is_some_and(Basic::is_integer);
    rank.node().settings().reduce_order == ReduceOrder::Ranks && !(matches!(op, Op::Predefined(_)) && is_exact())
}

/// Operands of the members of a group, each of as many elements as `operand`, the caller's.
#[derive(Clone, Copy)]
pub(crate) struct Operands<'g, 'a> {
    pub(crate) group: Subgroup<'g>,
    pub(crate) folder: &'g Folder<'a>,
    pub(crate) operand: Buffer<'a>,
}

impl<'g, 'a> Operands<'g, 'a> {
    /// Those of a reducing call.
    fn of(group: Subgroup<'g>, folder: &'g Folder<'a>, call: &Reduction<'a>) -> Self {
        Self { group, folder, operand: call.operand() }
    }

    /// Steps that fold everybody's operands at the first of a group. Returns where the result is there; elsewhere that
    /// memory is of no use.
    fn fold_at_first(self, schedule: &mut ScheduleBuilder<'a>) -> Result<Buffer<'a>, EngineError> {
        match is_grouped_by_rank(schedule.rank(), self.folder.op(), self.folder.datatype()) {
            true => self.fold_linear(schedule),
            false => self.fold_binomial(schedule),
        }
    }

    /// [`Operands::fold_at_first`] as within a node: `operand[0] op (operand[1] op (…))`.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`].
    pub(crate) fn fold_linear(self, schedule: &mut ScheduleBuilder<'a>) -> Result<Buffer<'a>, EngineError> {
        let Self { group, folder, operand: own } = self;
        let count = own.count();
        let sum = schedule.room(folder, count)?;
        if group.me != 0 {
            schedule.send(group.at(0), own);
            schedule.wait();
            return Ok(sum);
        }
        let last = group.size - 1;
        if last == 0 {
            schedule.copy(own, sum);
            return Ok(sum);
        }
        schedule.receive_operand(group.at(last), sum);
        let window = (WINDOW / own.bytes().max(1)).clamp(1, group.size as u64) as usize;
        let mut rooms = Vec::new();
        for _ in 0..window.min(last - 1) {
            rooms.push(schedule.room(folder, count)?);
        }
        let mut missing = last;
        while missing > 1 {
            let places = missing.saturating_sub(window).max(1)..missing;
            missing = places.start;
            for (place, &room) in places.clone().rev().zip(&rooms) {
                schedule.receive_operand(group.at(place), room);
            }
            schedule.wait();
            for (_, &room) in places.zip(&rooms) {
                schedule.fold(room, sum);
            }
        }
        schedule.wait();
        schedule.fold(own, sum);
        Ok(sum)
    }

    /// [`Operands::fold_at_first`] along a binomial tree of neighbours. Who receives nothing sends its operand from
    /// where it lies.
    fn fold_binomial(self, schedule: &mut ScheduleBuilder<'a>) -> Result<Buffer<'a>, EngineError> {
        let Self { group, folder, operand } = self;
        let (Subgroup { me, size, .. }, count) = (group, operand.count());
        let mut sum = operand;
        // Memory of the schedule that nothing lies in any more.
        let (mut free, mut has_folded) = (None, false);
        let mut distance = 1;
        while distance < size {
            if me & distance != 0 {
                schedule.send(group.at(me - distance), sum);
                schedule.wait();
                break;
            }
            if me + distance < size {
                let theirs = match free.take() {
                    Some(room) => room,
                    None => schedule.room(folder, count)?,
                };
                schedule.receive_operand(group.at(me + distance), theirs);
                schedule.wait();
                schedule.fold(sum, theirs);
                free = has_folded.then_some(sum);
                has_folded = true;
                sum = theirs;
            }
            distance *= 2;
        }
        if size == 1 {
            sum = schedule.room(folder, count)?;
            schedule.copy(operand, sum);
        }
        Ok(sum)
    }

    /// Steps that fold the caller's share of everybody's operands, in rank order. `shares` are the elements of each
    /// place of the group. Returns where the result is; the operands are free afterwards. `second` is a message beside
    /// each operand.
    fn fold_share(
        self,
        schedule: &mut ScheduleBuilder<'a>,
        shares: impl Fn(usize) -> Range<u64>,
        second: Second,
    ) -> Result<Buffer<'a>, EngineError> {
        let Self { group, folder, operand } = self;
        let Subgroup { me, size, .. } = group;
        let own = operand.within(shares(me));
        let mut operands = reserve(size)?;
        for place in 0..size {
            let is_kept = place == me && me + 1 < size;
            operands.push(match is_kept {
                true => own,
                false => schedule.room(folder, own.count())?,
            });
        }
        if me + 1 == size {
            // Operands are folded into the last one. First, so that all messages start at once.
            schedule.copy(own, operands[me]);
        }
        let nothing = Buffer::EMPTY;
        let others = || (0..size).filter(|&place| place != me);
        for place in others().filter(|_| second == Second::Always) {
            schedule.receive(group.at(place), nothing);
            schedule.send(group.at(place), nothing);
        }
        for place in others() {
            match second {
                Second::IfUnlike => schedule.receive_operand_of(group, (place, place as u8), operands[place]),
                Second::Never | Second::Always => schedule.receive_operand(group.at(place), operands[place]),
            }
        }
        for distance in 1..size {
            let place = (me + distance) % size;
            schedule.send(group.at(place), operand.within(shares(place)));
        }
        schedule.wait();
        for place in others().filter(|_| second == Second::IfUnlike) {
            schedule.second_if_unlike(group, (place, place as u8));
        }
        let sum = operands[size - 1];
        for &operand in operands[..size - 1].iter().rev() {
            schedule.fold(operand, sum);
        }
        Ok(sum)
    }

    /// Steps that fold operands at those that get the result, the elements `shares` of each place; short ones of very
    /// many at the first of the group, which deals the result out. Returns where the caller's part is.
    fn fold_and_scatter(
        self,
        schedule: &mut ScheduleBuilder<'a>,
        shares: impl Fn(usize) -> Range<u64>,
    ) -> Result<Buffer<'a>, EngineError> {
        let Self { group, folder, operand } = self;
        if folds_in_shares(group, folder, operand.count()) {
            return self.fold_share(schedule, shares, Second::Never);
        }
        let sum = self.fold_at_first(schedule)?;
        let mine = shares(group.me);
        if group.me != 0 {
            let room = schedule.room(folder, mine.end - mine.start)?;
            schedule.receive_operand(group.at(0), room);
            schedule.wait();
            return Ok(room);
        }
        for place in 1..group.size {
            schedule.send(group.at(place), sum.within(shares(place)));
        }
        Ok(sum.within(mine))
    }
}

/// Steps of a reduce among a group: folded at its first member, and sent on to the one at place `root`.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub(crate) fn reduce<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    group: Subgroup<'_>,
    folder: &Folder<'a>,
    call: &Reduction<'a>,
    root: usize,
) -> Result<(), EngineError> {
    let count = call.count();
    if group.size > TREE_MOST && folds_in_shares(group, folder, count) {
        return reduce_in_shares(schedule, group, folder, call, Some(root));
    }
    let sum = Operands::of(group, folder, call).fold_at_first(schedule)?;
    let output = call.result;
    match (group.me, root) {
        (0, 0) => schedule.copy(sum, output),
        (0, _) => schedule.send(group.at(root), sum),
        (me, _) if me == root => schedule.receive_operand(group.at(0), output),
        _ => {}
    }
    Ok(())
}

/// Steps of an allreduce among a group: each member folds a share, or, of short operands, all; in a very long group the
/// first one folds those and broadcasts the result.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub(crate) fn allreduce<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    group: Subgroup<'_>,
    folder: &Folder<'a>,
    call: &Reduction<'a>,
) -> Result<(), EngineError> {
    let (count, size) = (call.count(), group.size as u64);
    let doubles = doubles(schedule, group, folder);
    if doubles && (1..=DOUBLED_MOST).contains(&(folder.bytes_of(count) * size * size)) {
        return fold_by_doubling(schedule, group, folder, call);
    }
    let is_short = match doubles {
        true => folder.bytes_of(count / size) * size * size <= DOUBLED_MOST,
        false => folder.bytes_of(count) * size <= EVERYWHERE_MOST,
    };
    if (2..=ANY_BYTES_MOST).contains(&group.size) && is_short {
        return fold_everywhere(schedule, group, folder, call);
    }
    if folds_in_shares(group, folder, call.count()) {
        return reduce_in_shares(schedule, group, folder, call, None);
    }
    let output = call.result;
    let sum = Operands::of(group, folder, call).fold_at_first(schedule)?;
    if group.me == 0 {
        schedule.copy(sum, output);
    }
    broadcast(schedule, group, output, 0)
}

/// Whether short operands are folded by doubling: where that saves messages, in a group that it divides evenly.
fn doubles(schedule: &ScheduleBuilder<'_>, group: Subgroup<'_>, folder: &Folder<'_>) -> bool {
    matches!(group.size, 4 | 8)
        && schedule.saves_messages()
        && !is_grouped_by_rank(schedule.rank(), folder.op(), folder.datatype())
}

/// Steps of an allreduce of short operands by *doubling*: after step *k* each member has what those of its 2^*k* have
/// together, and changes it for that of as many others.
///
/// What comes first from a member that does otherwise is empty ([`fold_everywhere`]) or longer than any operand here (a
/// share: [`DOUBLED_MOST`]). Who has seen another length than its own sends nothing but empty messages from then on,
/// so after the last step all know of it: then each sends and receives as many more that each has exchanged two with
/// each other one, as the other ways do.
fn fold_by_doubling<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    group: Subgroup<'_>,
    folder: &Folder<'a>,
    call: &Reduction<'a>,
) -> Result<(), EngineError> {
    let Subgroup { me, size, .. } = group;
    let (count, partners) = (call.count(), || (0..size.trailing_zeros()).map(|step| me ^ 1 << step));
    let mut sum = call.operand();
    // Memory of the schedule that nothing lies in any more.
    let (mut free, mut has_folded) = (None, false);
    for other in partners() {
        let theirs = match free.take() {
            Some(room) => room,
            None => schedule.room(folder, count)?,
        };
        schedule.receive_operand_of(group, (other, ALL), theirs);
        schedule.send_unless_unlike(group, other, sum);
        schedule.wait();
        if me < other {
            schedule.fold(sum, theirs);
            free = has_folded.then_some(sum);
            sum = theirs;
        } else {
            if !has_folded {
                sum = schedule.room(folder, count)?;
                schedule.copy(call.operand(), sum);
            }
            schedule.fold(theirs, sum);
            free = Some(theirs);
        }
        has_folded = true;
    }
    for other in (0..size).filter(|&other| other != me) {
        schedule.second_if_unlike(group, (other, ALL));
        if !partners().any(|partner| partner == other) {
            schedule.second_if_unlike(group, (other, ALL));
        }
    }
    schedule.copy(sum, call.result);
    Ok(())
}

/// An empty message beside that with an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Second {
    Never,
    Always,
    /// If the other's operand has another length.
    IfUnlike,
}

/// Steps of an allreduce of short operands, all of which each member folds. It sends each other one as many messages as
/// [`reduce_in_shares`] does, of which one is empty: members that disagree about the length notice.
///
/// Of operands so short that no share has their length, the second one is sent only where that is needed. A member that
/// does this, and another that does not, or whose operand has another length, both see a length that they do not
/// expect: nothing, in place of something, the operand itself, or a share that is longer than this one. So both send
/// and expect a second message.
fn fold_everywhere<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    group: Subgroup<'_>,
    folder: &Folder<'a>,
    call: &Reduction<'a>,
) -> Result<(), EngineError> {
    let count = call.count();
    let second = match folder.bytes_of(count) * 2 * (group.size as u64).pow(2) {
        1..=EVERYWHERE_MOST => Second::IfUnlike,
        _ => Second::Always,
    };
    let sum = Operands::of(group, folder, call).fold_share(schedule, |_| 0..count, second)?;
    schedule.copy(sum, call.result);
    Ok(())
}

/// Whether each member of a group folds a part of the operands: always, but where there are so many that short operands
/// are better sent on from member to member.
fn folds_in_shares(group: Subgroup<'_>, folder: &Folder<'_>, count: u64) -> bool {
    let bytes = folder.bytes_of(count);
    group.size > 1 && (group.size <= ANY_BYTES_MOST || bytes >= SHARE_LEAST * group.size as u64)
}

/// Whether the members of a group send to all others in this operation, not just to some a power of two away.
pub(super) fn sends_to_all(size: usize, reduction: &Reduction<'_>) -> bool {
    size <= ANY_BYTES_MOST || reduction.result.bytes() >= SHARE_LEAST * size as u64
}

/// Steps of a reduce of long operands: each member folds a share, and sends it to the one at place `root`, or to all.
fn reduce_in_shares<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    group: Subgroup<'_>,
    folder: &Folder<'a>,
    call: &Reduction<'a>,
    root: Option<usize>,
) -> Result<(), EngineError> {
    let Subgroup { me, size, .. } = group;
    let shares = |place| share(call.count(), place, size);
    let sum = Operands::of(group, folder, call).fold_share(schedule, shares, Second::Never)?;
    let result = |place| call.result.within(shares(place));
    let others = || (1..size).map(|distance| (me + distance) % size);
    if root.is_none_or(|root| root == me) {
        schedule.copy(sum, result(me));
        others().for_each(|place| schedule.receive_operand(group.at(place), result(place)));
    }
    for place in others().filter(|&place| root.is_none_or(|root| root == place)) {
        schedule.send(group.at(place), sum);
    }
    schedule.wait();
    Ok(())
}

/// The element of the result of a reduce-scatter at which each member's begin, and the number of all.
fn starts_of(counts: &[i64]) -> Result<Vec<u64>, EngineError> {
    let mut starts = reserve(counts.len() + 1)?;
    starts.push(0);
    let mut next = 0;
    starts.extend(counts.iter().map(|&count| {
        next += count as u64;
        next
    }));
    Ok(starts)
}

/// Steps of a reduce-scatter among all members.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub(crate) fn reduce_scatter<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    folder: &Folder<'a>,
    call: &Reduction<'a>,
    counts: &[i64],
) -> Result<(), EngineError> {
    let group = schedule.everyone();
    let count = counts[group.me] as u64;
    let starts = starts_of(counts)?;
    let shares = |place: usize| starts[place]..starts[place + 1];
    let result = Operands::of(group, folder, &call.of(starts[group.size])).fold_and_scatter(schedule, shares)?;
    schedule.copy(result, call.of(count).result);
    Ok(())
}

/// Steps of a reduce-scatter among leaders. The operand of `call` is what those of the caller's node are folded to; the
/// results of that node's members come to its output, where a whole result would have them.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub(crate) fn reduce_scatter_of_nodes<'a>(
    schedule: &mut ScheduleBuilder<'a>,
    (map, group): (&NodeMap, Subgroup<'_>),
    folder: &Folder<'a>,
    call: &Reduction<'a>,
    counts: &[i64],
) -> Result<(), EngineError> {
    if !map.is_in_order() {
        allreduce(schedule, group, folder, call)?;
        schedule.wait();
        return Ok(());
    }
    let starts = starts_of(counts)?;
    let shares = |node| {
        let members = map.members(node);
        let first = members[0] as usize;
        starts[first]..starts[first + members.len()]
    };
    let mine = shares(group.me);
    let result = Operands::of(group, folder, call).fold_and_scatter(schedule, shares)?;
    schedule.copy(result, call.result.within(mine));
    Ok(())
}

#[cfg(test)]
mod tests;
