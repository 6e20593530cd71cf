//! Barriers and small reductions of members that live on one node and survive each other, at their seats.

use crate::args::{Call, Label, Reduction};
use crate::blocking::schedule::run_alone;
use crate::exchange::may_communicate;
use crate::fold::{Folder, Runner};
use crate::members::{Caller, Chair, Hierarchy, ROOM, Seats};
use alloc::boxed::Box;
use cohort_base::text::FixedText;
use cohort_core::EngineError;
use cohort_core::wait::{WaitKind, until};
use cohort_datatype::Buffer;
use core::ptr::with_exposed_provenance_mut;

/// Runs an operation at the seats; `None`: it is none of these.
pub(super) fn run(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    call: &Call<'_>,
    folder: Option<Folder<'_>>,
) -> Option<Result<(), EngineError>> {
    let chair = hierarchy.chair()?;
    let reduction = match call {
        Call::Barrier => None,
        Call::Allreduce { reduction } => Some((folder?, *reduction, room(reduction)?)),
        _ => return None,
    };
    let meeting = chair.next_meeting()?;
    Some(find(group, chair).and_then(|seats| meet(group, seats, meeting, reduction)))
}

/// Bytes of what the members say, if there is room. They agree about it, as they do about type and number of elements.
fn room(reduction: &Reduction<'_>) -> Option<u64> {
    reduction.stealable_bytes()?;
    let extent = u64::try_from(reduction.datatype().extent()).ok()?;
    extent.checked_mul(reduction.count()).filter(|&bytes| bytes <= ROOM as u64)
}

/// The seats. The first member makes them, and tells the others.
fn find<'a>(group: &Caller<'_>, chair: &'a Chair) -> Result<&'a Seats, EngineError> {
    if chair.seats().is_none() {
        let mut address = 0_u64;
        if group.me == 0 {
            // Should somebody not hear of them, they stay.
            address = Box::into_raw(Box::new(Seats::new(group.world.len()))).expose_provenance() as u64;
        }
        // SAFETY: the word outlives the call, which waits for its end.
        let buffer = unsafe { Buffer::of_bytes((&raw mut address).cast(), size_of::<u64>() as u64) };
        run_alone(group, &Call::Bcast { buffer, root: 0 }, None)?;
        // SAFETY: the first member has made them, in this address space.
        unsafe { chair.know(with_exposed_provenance_mut(address as usize)) };
    }
    chair.seats().ok_or(EngineError::OutOfMemory)
}

/// Meets all others.
fn meet(
    group: &Caller<'_>,
    seats: &Seats,
    meeting: u64,
    reduction: Option<(Folder<'_>, Reduction<'_>, u64)>,
) -> Result<(), EngineError> {
    let node = group.rank().node();
    let mine = group.label.with(reduction.map_or(0, |(_, _, bytes)| bytes));
    if let Some((folder, reduction, _)) = &reduction {
        let place = seats.place(group.me as usize, meeting);
        // SAFETY: there is room for them, and nobody looks at it now.
        unsafe { folder.copy(reduction.operand().base(), place, reduction.count()) };
    }
    if seats.come(group.me as usize, meeting, mine) {
        let others = group.world.iter().filter(|&&peer| peer != group.rank().peer());
        others.filter_map(|&peer| node.local(peer)).for_each(|local| _ = node.rank(local).wake());
    }
    until(group.owner, WaitKind::Collective, || seats.all_have_come(meeting) || is_lost(group, seats, meeting));
    if !seats.all_have_come(meeting) {
        return Err(give_up(group));
    }
    if let Some(other) = (0..group.world.len()).find(|&member| seats.label(member, meeting) != mine) {
        differ(group, other, mine, seats.label(other, meeting))?;
    }
    let Some((folder, reduction, _)) = reduction else {
        return Ok(());
    };
    // SAFETY: each member has said so many elements, which nobody changes before we come to the next meeting.
    let operands = seats.said(meeting).map(|said| unsafe { folder.buffer(said, reduction.count()) });
    folder.fold_buffers(operands, reduction.result(), Runner::Owner);
    Ok(())
}

/// Whether somebody will never come, or has given up.
fn is_lost(group: &Caller<'_>, seats: &Seats, meeting: u64) -> bool {
    let node = group.rank().node();
    if node.failure_epoch() == 0 {
        return false;
    }
    // Who is seen to have failed does not come any more.
    let is_missing = |(member, &peer): (usize, &_)| node.has_failed(peer) && !seats.has_come(member, meeting);
    given_up(group).is_some() || group.world.iter().enumerate().any(is_missing)
}

/// Why somebody has given up in the group, or in the intercommunicator of which this is a group: its leader does not
/// come to this group's meetings any more when messages to the other one fail.
fn given_up(group: &Caller<'_>) -> Option<EngineError> {
    let (node, rank) = (group.rank().node(), group.rank());
    let contexts = [Some(group.context), node.context_between(rank, group.context)];
    contexts.into_iter().flatten().find_map(|context| may_communicate(rank, context).err())
}

/// The others are not to wait either.
#[cold]
fn give_up(group: &Caller<'_>) -> EngineError {
    given_up(group).unwrap_or_else(|| {
        cohort_p2p::close_collectives(group.rank(), group.context);
        EngineError::Failed
    })
}

/// The caller's call is not that of a member, or has other sizes.
#[cold]
#[inline(never)]
fn differ(group: &Caller<'_>, member: usize, mine: u64, theirs: u64) -> Result<(), EngineError> {
    let beside = group.label.beside(theirs);
    if beside <= Label::FREE {
        let own = group.label.beside(mine);
        return Err(EngineError::Truncated { message: own.max(beside), buffer: own.min(beside) });
    }
    let (rank, label, theirs) = (group.rank(), group.label, Label::borne_by(theirs));
    let other = rank.node().world_rank(group.world[member]);
    let text = FixedText::<320>::of(format_args!(
        "cohort: collectives of a communicator are not called in the same order: rank {} calls {label}, and rank \
         {other} {theirs}",
        rank.world_rank(),
    ));
    cohort_core::lifecycle::abort(rank, 1, text.as_str())
}
