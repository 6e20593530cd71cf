//! Schedules of calls that wait for their end.

use crate::args::{Call, Label};
use crate::data::copy_whole;
use crate::exchange::wait_for;
use crate::fold::{Folder, Runner};
use crate::members::Caller;
use crate::schedule::{Endpoint, MemberList, Message, Schedule, Step};
use crate::write::{ScheduleBuilder, write};
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_core::Owner;
use cohort_core::claim::Claim;
use cohort_net::together;

/// Tags of the messages of blocking collectives begin here and go down to [`END`]: one for each label. Members call
/// these in the same order and messages between two processes do not overtake each other, so one would do; in a wrong
/// program with another order, a message of another call is not taken for one of this.
const FIRST: i32 = -2;
const END: i32 = FIRST - Label::NUMBERS;
const _: () = assert!(END > -1000, "those of nonblocking collectives begin there");

/// Whose messages those of the group's member are.
pub(crate) fn endpoint<'a>(group: &Caller<'a>) -> Endpoint<'a> {
    Endpoint {
        rank: group.rank(),
        context: group.context,
        me: group.me,
        tag: FIRST - group.label.number(),
        members: MemberList::Borrowed(group.world),
        theirs: 0..0,
    }
}

/// A schedule to be written and then [`run`], of the group's member.
pub(crate) fn builder<'a>(group: &Caller<'a>, folder: Option<Folder<'a>>) -> ScheduleBuilder<'a> {
    ScheduleBuilder::new(endpoint(group), folder)
}

/// [`run_schedule`] of what was written.
///
/// # Errors
/// As there.
pub(crate) fn run(owner: Owner<'_>, schedule: ScheduleBuilder<'_>) -> Result<(), EngineError> {
    run_schedule(owner, &schedule.done())
}

/// Runs all steps and waits for their end.
///
/// # Errors
/// [`EngineError::Truncated`] when a message was longer than its room, after everything else was done;
/// [`EngineError::OutOfMemory`], when some messages may be missing.
pub(crate) fn run_schedule(owner: Owner<'_>, schedule: &Schedule<'_>) -> Result<(), EngineError> {
    let mut messages = Vec::new();
    // Messages that follow each other start together.
    let mut stages = schedule.steps.chunk_by(|one, next| one.is_message() && next.is_message());
    let done = stages.try_fold(Ok(()), |outcome, steps| match take(owner, schedule, steps, &mut messages) {
        Err(error @ (EngineError::OutOfMemory | EngineError::Failed | EngineError::Revoked)) => Err(error),
        taken => Ok(outcome.and(taken)),
    });
    let waited = wait(owner, schedule, &mut messages);
    done?.and(waited)
}

/// Takes a step, or starts messages that follow each other.
fn take(
    owner: Owner<'_>,
    schedule: &Schedule<'_>,
    steps: &[Step<'_>],
    messages: &mut Vec<Message>,
) -> Result<(), EngineError> {
    match &steps[0] {
        first if first.is_if_unlike() && schedule.unlike.get() == 0 => Ok(()),
        first if first.is_message() => start(owner, schedule, steps, messages),
        Step::Copy { from, to, .. } => copy_whole(*to, *from),
        Step::Deliver { block, into, .. } => schedule.deliver(*block, *into).1,
        Step::Fold { left, right } => {
            // This is a call of the owner's.
            schedule.combine(*left, *right, Runner::Owner);
            Ok(())
        }
        _ => wait(owner, schedule, messages),
    }
}

/// Waits for all messages so far.
fn wait(owner: Owner<'_>, schedule: &Schedule<'_>, messages: &mut Vec<Message>) -> Result<(), EngineError> {
    wait_for(owner, messages.drain(..), |from, outcome| schedule.hear(from, outcome))
}

/// Starts messages.
fn start(
    owner: Owner<'_>,
    schedule: &Schedule<'_>,
    steps: &[Step<'_>],
    messages: &mut Vec<Message>,
) -> Result<(), EngineError> {
    messages.try_reserve(steps.len()).map_err(|_| EngineError::OutOfMemory)?;
    let mut start = |claim: &mut Claim<'_>| {
        for step in steps {
            messages.extend(schedule.begin(claim, step)?);
        }
        Ok(())
    };
    let claim = &mut owner.rank().enter();
    // One message is quicker by itself.
    match steps.iter().filter(|step| matches!(step, Step::Send { .. })).nth(1) {
        Some(_) => together(claim, start),
        None => start(claim),
    }
}

/// Writes and runs an operation in which each member sends and receives for itself; of a reducing one with its folder.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_alone<'a>(
    group: &Caller<'a>,
    call: &Call<'a>,
    folder: Option<Folder<'a>>,
) -> Result<(), EngineError> {
    let mut schedule = builder(group, folder);
    write(&mut schedule, call, folder.as_ref())?;
    run(group.owner, schedule)
}
